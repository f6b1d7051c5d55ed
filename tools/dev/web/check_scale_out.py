#!/usr/bin/env python3
"""Runs docs/guide/nginx.conf before three `medusa serve`, and checks what docs/guide/scale-out.md says.

    apt-get install nginx openssl
    tools/dev/web/check_scale_out.py                     # the tiny model of the tests
    tools/dev/web/check_scale_out.py --config my.yaml --nginx /usr/sbin/nginx
"""
import argparse
import collections
import concurrent.futures
import http.client
import json
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2].parent
NUM_SERVERS, NUM_CLIENTS = 3, 16


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Servers:
    def __init__(self, options, folder):
        self.ports, self.processes, self.logs = [], [], []
        for i in range(NUM_SERVERS):
            self.ports.append(free_port())
            self.logs.append(folder / f"server-{i}.jsonl")
            self.processes.append(None)
            self.start(i, options)

    def start(self, i, options):
        command = [options.medusa, "serve", "--config", options.config, "--port",
                   str(self.ports[i]), "--batch", "4", "--log", str(self.logs[i])]
        self.processes[i] = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.ports[i])
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:  # else it still loads its model
                    return
            except OSError:
                pass
            assert self.processes[i].poll() is None, "the server has ended"
            time.sleep(.1)
        raise AssertionError("the server does not answer")

    def answered(self):
        """How many texts each has given."""
        return [sum('"finish_reasons"' in line for line in log.read_text().splitlines())
                for log in self.logs]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def start_nginx(options, servers, folder) -> tuple[subprocess.Popen, int]:
    port = free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                    folder / "key.pem", "-out", folder / "cert.pem"],
                   check=True, stderr=subprocess.DEVNULL)
    text = (ROOT / "docs/guide/nginx.conf").read_text()
    changes = {"listen 443": f"listen 127.0.0.1:{port}",
               "/etc/ssl/llm.example.org.pem": str(folder / "cert.pem"),
               "/etc/ssl/llm.example.org.key": str(folder / "key.pem"),
               "/run/nginx.pid": str(folder / "nginx.pid"),
               "/var/log/nginx/error.log": str(folder / "error.log"),
               "/var/log/nginx/access.log": str(folder / "access.log"),
               "worker_processes auto": "worker_processes 1",
               "\nhttp {\n": "\nhttp {\n" + "".join(
                   f"  {kind}_temp_path {folder}/{kind};\n"
                   for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))}
    for i, server in enumerate(servers.ports):
        changes[f"10.0.0.{i + 1}:8080"] = f"127.0.0.1:{server}"
    for old, new in changes.items():
        assert text.count(old) == (2 if old.startswith("10.0.0.") else 1), old
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text)
    process = subprocess.Popen([options.nginx, "-p", folder, "-c", folder / "nginx.conf",
                                "-g", "daemon off;"])
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            assert process.poll() is None, (folder / "error.log").read_text()
            time.sleep(.05)
    raise AssertionError("nginx does not listen")


class Client:
    def __init__(self, port, certificate):
        self.port, self.context = port, ssl.create_default_context(cafile=certificate)

    def ask(self, content, tokens=20, stream=False):
        """Status and text. A connection that breaks is an OSError or an HTTPException."""
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.context,
                                                 timeout=60)
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": tokens,
                "temperature": 0, "ignore_eos": True, "stream": stream}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        reply = connection.getresponse()
        if not stream:
            answer = json.loads(reply.read())
            return reply.status, (answer["choices"][0]["message"]["content"]
                                  if reply.status == 200 else answer)
        times, text, done = [], "", False
        for line in reply:
            if line.startswith(b"data: {"):
                times.append(time.monotonic())
                for choice in json.loads(line[6:])["choices"]:
                    text += choice["delta"].get("content") or ""
            done = done or line.startswith(b"data: [DONE]")
        if not done:
            raise http.client.IncompleteRead(text.encode())
        return reply.status, (text, times)

    def get(self, path):
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.context)
        connection.request("GET", path)
        return connection.getresponse().status


def check_where_requests_go(client, servers):
    systems = [f"Conversation {i}: " + "Once upon a time there was a dog. " * 3 for i in range(24)]
    homes = []
    time.sleep(.5)  # a line of the log comes just behind its answer
    for system in systems:
        before = servers.answered()
        for _ in range(3):
            assert client.ask(system, 2)[0] == 200
        while sum(servers.answered()) < sum(before) + 3:
            time.sleep(.01)
        gained = [b - a for a, b in zip(before, servers.answered())]
        assert sorted(gained) == [0, 0, 3], f"one server has all three: {gained}"
        homes.append(gained.index(3))
    spread = collections.Counter(homes)
    assert len(spread) == NUM_SERVERS and max(spread.values()) < len(systems), spread
    print(f"24 beginnings, three times each: always the same server; servers have {dict(spread)}")


def check_a_killed_server(client, servers, expected):
    failed = []

    def run(i):
        wrong = 0
        for j in range(8):
            content = f"{i % 8} " + "Lily and Tom"
            for _ in range(5):
                try:
                    status, (text, _) = client.ask(content, 60, stream=True)
                    assert status == 200
                    wrong += text != expected[content]
                    break
                except (OSError, http.client.HTTPException):
                    failed.append((i, j))
            else:
                wrong += 1
        return wrong

    with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
        running = [pool.submit(run, i) for i in range(NUM_CLIENTS)]
        time.sleep(.4)
        servers.processes[0].kill()
        wrong = sum(each.result() for each in running)
    assert wrong == 0, f"{wrong} answers are wrong or never came"
    assert len(failed) <= 4 * 2, f"more broke off than the dead server ran: {failed}"
    print(f"one of three killed under {NUM_CLIENTS} clients: no answer is wrong, "
          f"{len(failed)} broke off and were asked for again")


def check_a_stopped_server(client, servers, expected):
    with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
        running = [pool.submit(client.ask, f"{i % 8} Lily and Tom", 60, True)
                   for i in range(NUM_CLIENTS)]
        time.sleep(.1)
        servers.processes[1].send_signal(signal.SIGTERM)
        for i, each in enumerate(running):
            assert each.result()[1][0] == expected[f"{i % 8} Lily and Tom"]
    assert servers.processes[1].wait(timeout=30) == 0
    print("one stopped by SIGTERM: every answer came")


def check_a_new_version(client, servers, options, expected, error_log):
    """Each is stopped and started again, at once behind the one before; clients ask all the time."""
    stopped = []

    def run(i):
        content, count = f"{i % 8} Lily and Tom", 0
        while not stopped:
            status, text = client.ask(content, 60)
            assert (status, text) == (200, expected[content]), (status, text)
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
        running = [pool.submit(run, i) for i in range(4)]
        try:
            for i in range(NUM_SERVERS):
                servers.processes[i].send_signal(signal.SIGTERM)
                servers.processes[i].wait(timeout=30)
                servers.start(i, options)
        finally:
            stopped.append(True)
        counts = [each.result() for each in running]
    # On a slow machine the first one has rested enough before the last one stops.
    rested = error_log.read_text().count("no live upstreams")
    print(f"all three started again, one after the other: {sum(counts)} answers, none lost; all were "
          f"at rest for {rested} of them")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--medusa", default=str(ROOT / "build/release/medusa"))
    parser.add_argument("--nginx", default="nginx")
    parser.add_argument("--config", help="of a run to serve; default: the tiny model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        if not options.config:
            options.config = str(folder / "tiny.yaml")
            pathlib.Path(options.config).write_text(
                f"run: {folder}/run\nbackbone: {{model: {ROOT}/tests/golden/tiny_model.gguf, "
                "chat_template: plain, context: 256}\n")
        servers = Servers(options, folder)
        nginx, port = start_nginx(options, servers, folder)
        try:
            client = Client(port, folder / "cert.pem")
            assert client.get("/health") == 200
            assert client.get("/metrics") == client.get("/slots") == 404
            _, (text, times) = client.ask("Once upon a time", 100, stream=True)
            assert text == client.ask("Once upon a time", 100)[1]
            assert len(times) > 5 and times[-1] > times[0], "events come one after the other"
            print(f"TLS: a stream of {len(times)} events says what a whole answer says")
            check_where_requests_go(client, servers)
            expected = {}
            for i in range(8):
                content = f"{i} Lily and Tom"
                expected[content] = client.ask(content, 60)[1]
            check_a_killed_server(client, servers, expected)
            servers.start(0, options)
            time.sleep(11)  # nginx lets it rest for 10 s
            check_a_stopped_server(client, servers, expected)
            servers.start(1, options)
            check_a_new_version(client, servers, options, expected, folder / "error.log")
        finally:
            nginx.terminate()
            nginx.wait()
            servers.end()
    print("as docs/guide/scale-out.md says")


if __name__ == "__main__":
    main()
