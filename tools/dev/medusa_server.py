"""A `medusa serve` for scripts that ask one."""

import http.client
import json
import pathlib
import signal
import subprocess
import tempfile
import urllib.parse

MEDUSA = str(pathlib.Path(__file__).resolve().parents[2] / "build/release/medusa")
PATIENCE = 120  # seconds


class MedusaServer:
    """Listens on a free port of this machine, until the end of the with."""

    def __init__(self, arguments, medusa=MEDUSA, cwd=None):
        self.command = [medusa, "serve", *map(str, arguments), "--port", "0", "--json"]
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(self.command, cwd=cwd, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise AssertionError(f"the server has ended: {self.errors.read()}")
        self.url = json.loads(line)["url"].rstrip("/")
        where = urllib.parse.urlparse(self.url)
        self.address = (where.hostname, where.port)

    def connect(self):
        return http.client.HTTPConnection(*self.address, timeout=PATIENCE)

    def ask(self, path, body=None):
        """What it answers to a GET, or to a POST of this body."""
        connection = self.connect()
        if body is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        assert reply.status == 200, answer
        return answer

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, "the server did not end well"
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
