#!/usr/bin/env python3
"""Many clients of one `medusa serve`: whether each gets the text it would get alone, and how long that takes.

    tools/dev/load_test.py --model tests/golden/tiny_model.gguf --seconds 10
    tools/dev/load_test.py --model models/my-llama.gguf --seconds 60 --json load.json

Starts the server itself. The texts are first written one at a time and plainly. Then 1, 4 and 16 clients ask for them
again, in a closed loop and with all drafters; some leave in the middle, some read slowly, some send too much. At last the
most clients come once more, and the server must not have grown. Prints a table.
"""
import argparse
import json
import pathlib
import random
import socket
import sys
import threading
import time

from medusa_server import MEDUSA, PATIENCE, MedusaServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPTS = ["Once upon a time", "Lily and Tom", "The big dog", "One day, a boy", "Mom said", "In the park",
           "A little bird", "Lily and Tom. Lily and Tom. Lily and"]
MOST_GROWTH = 16 << 20  # bytes, between two rounds of the same clients


class Server(MedusaServer):
    def __init__(self, medusa, model, more):
        # Only completions are asked for, so a model without a chat template will do.
        super().__init__([model, "--set", "generate.shared.megabytes=4", "--set", "backbone.chat_template=plain", *more], medusa)
        self.drafters = self.ask("/v1/models")["data"][0]["medusa"]["drafters"]

    def memory(self):
        """Bytes that it holds, its file mappings left out."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(status.split("RssAnon:")[1].split()[0])

    def wait_until_idle(self):
        end = time.monotonic() + PATIENCE
        while self.ask("/slots"):
            assert time.monotonic() < end, "sequences of clients that have left still run"
            time.sleep(.05)


def texts_to_ask_for(tokens):
    return [{"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": temperature, "seed": seed}
            for prompt in PROMPTS for temperature, seed in ((0, 1), (.8, 2))]


class Round:
    """One number of clients, for some seconds."""

    def __init__(self, server, bodies, expected, clients, seconds):
        self.server, self.bodies, self.expected = server, bodies, expected
        self.lock = threading.Lock()
        self.first, self.gaps, self.tokens, self.wrong = [], [], 0, []
        self.kinds = {kind: 0 for kind in ("answer", "leave", "slow", "oversize")}
        began = time.monotonic()
        self.end = began + seconds
        threads = [threading.Thread(target=self.client, args=(seed,)) for seed in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.seconds = time.monotonic() - began

    def client(self, seed):
        chance = random.Random(seed)
        while time.monotonic() < self.end and not self.wrong:
            kind = chance.choices(list(self.kinds), (85, 5, 5, 5))[0]
            which = chance.randrange(len(self.bodies))
            drafter = chance.choice(self.server.drafters)
            try:
                if kind == "oversize":
                    self.send_too_much()
                else:
                    self.stream(which, drafter, kind)
            except Exception as error:  # of any kind: this client is the check
                with self.lock:
                    self.wrong.append(f"{kind}, {drafter}: {error!r}")
            with self.lock:
                self.kinds[kind] += 1

    def stream(self, which, drafter, kind):
        body = {**self.bodies[which], "stream": True, "return_token_ids": True, "medusa": {"drafter": drafter}}
        connection = self.server.connect()
        began = last = time.monotonic()
        connection.request("POST", "/v1/completions", json.dumps(body))
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        text, first, gaps, tokens = "", None, [], 0
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            assert "error" not in event, event
            now = time.monotonic()
            for choice in event["choices"]:
                text += choice["text"]
                count = len(choice.get("token_ids") or [])
                if count and first is None:
                    first = now - began
                elif count:
                    gaps += [now - last] + [0] * (count - 1)  # a run comes at once
                tokens += count
                last = now
            if kind == "leave" and tokens:
                connection.close()
                return
            if kind == "slow":
                time.sleep(.02)
        assert text == self.expected[which], f"{self.bodies[which]}: {text!r}, alone {self.expected[which]!r}"
        if kind == "answer":
            with self.lock:
                self.first.append(first)
                self.gaps += gaps
                self.tokens += tokens

    def send_too_much(self):
        with socket.create_connection(self.server.address, PATIENCE) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n" +
                           b"a" * 100000)
            said = client.recv(100)
        assert said.startswith(b"HTTP/1.1 413"), said


def percentiles(values):
    """In milliseconds."""
    ordered = sorted(values)
    return {f"p{p}": round(1000 * ordered[min(len(ordered) - 1, len(ordered) * p // 100)], 2) if ordered else None
            for p in (50, 90, 99)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--medusa", default=MEDUSA)
    parser.add_argument("--model", default=str(ROOT / "tests/golden/tiny_model.gguf"))
    parser.add_argument("--clients", default="1,4,16")
    parser.add_argument("--seconds", type=float, default=10, help="for each number of clients")
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--json", help="a file for the numbers")
    parser.add_argument("serve", nargs="*", help="more options of medusa serve, behind --")
    options = parser.parse_args()
    with Server(options.medusa, options.model, options.serve) as server:
        bodies = texts_to_ask_for(options.tokens)
        expected = [server.ask("/v1/completions", {**body, "medusa": {"drafter": "none"}})["choices"][0]["text"]
                    for body in bodies]
        rounds, memory = [], []
        numbers = [int(number) for number in options.clients.split(",")]
        for clients in numbers + numbers[-1:]:
            done = Round(server, bodies, expected, clients, options.seconds)
            assert not done.wrong, "\n".join(done.wrong)
            server.wait_until_idle()
            memory.append(server.memory())
            rounds.append({"clients": clients, "tokens_per_second": round(done.tokens / done.seconds, 1),
                           "first_token_ms": percentiles(done.first), "between_tokens_ms": percentiles(done.gaps),
                           "requests": done.kinds, "server_bytes": memory[-1]})
    growth = memory[-1] - memory[-2]
    print("| clients | tokens/s | first token, ms: p50, p90, p99 | between tokens, ms: p50, p90, p99 | answers | server, MB |")
    print("|---|---|---|---|---|---|")
    for each in rounds:
        times = " | ".join(", ".join(str(value) for value in each[name].values())
                           for name in ("first_token_ms", "between_tokens_ms"))
        print(f"| {each['clients']} | {each['tokens_per_second']} | {times} | {each['requests']['answer']} | "
              f"{each['server_bytes'] / 1e6:.0f} |")
    print(f"\nevery text was the one written alone; drafters {', '.join(server.drafters)}; the last round added "
          f"{growth / 1e6:.1f} MB")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rounds": rounds, "drafters": server.drafters}, indent=1))
    if growth > MOST_GROWTH:
        sys.exit(f"the server grew by {growth / 1e6:.1f} MB between two rounds of the same clients")


if __name__ == "__main__":
    main()
