"""Attacks the program with what a stranger, a bad disk or a full one could hand it, and says where it behaves badly.

    python3 tools/dev/attack.py [--kinds gguf,settings] [--every 10] [--seed 1] [--medusa build/release/medusa]

It trains heads on the tests' tiny model, damages one thing in a copy of that run for each case, and starts the program in it. A case fails
when the exit code is not 0 or 2 (130 or 143 after a signal), the program dies of a signal, does not end in time, prints no message with what to do,
prints its own or a library's names, a control byte or bytes that are not UTF-8, touches a file that it was not told to write, leaves a
half-written one, loses or changes a finished one, or replaces a device; over HTTP, when a client's error is answered with 5xx (but 501) or not at all.
Failing cases are printed, a line each, then the counts; the exit code is 1 if there are any. The same seed draws the same cases; with
--every, another seed also takes others of those that are listed, not drawn. Needs nothing but Python. All cases take about three hours of
one core. A case that does not end in time on a busy machine wants a second look alone: --kinds KIND --only 'a part of its name'.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import attack_cases
import attack_company
import attack_files
import hostile_inputs
from attack_cases import CONFIG, RUN_YAML, spill
from hostile_inputs import MODEL, hostile_requests

KINDS = {**attack_files.KINDS, **attack_cases.KINDS, **attack_company.KINDS}
ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_CPU_SECONDS, PATIENCE = 5, 5
INTERNALS = re.compile(
    rb"this is a bug|\.(?:cpp|h):\d|std::|c10::|json\.exception|yaml-cpp|terminate called|assertion|bad_alloc|basic_string"
)
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
REWRITTEN = re.compile(r"/train/|/draft-train/|report\.html|\.medusa\.lock|bench\.|compare\.json|profile\.")  # also by a command that fails later
DEVICES = {path: os.lstat(path) for path in ("/dev/null", "/dev/zero", "/dev/full")}


class Attack:
    """Runs cases in copies of a trained run, and counts."""

    def __init__(self, medusa, work, shows):
        self.medusa, self.work, self.place, self.shows = medusa, work, work / "case", shows
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.counts, self.failures = collections.Counter(), collections.Counter()
        self.template = work / "template"
        self.make_template()

    def medusa_in(self, folder, *args, **more):
        return subprocess.run(
            [self.medusa, *args], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, **{"check": True, **more}
        )

    def make_template(self):
        """A run with all its artefacts, its exports, and files that are no business of it."""
        spill(self.template / "run.yaml", RUN_YAML)
        shutil.copy(MODEL, self.template / "model.gguf")
        spill(
            self.template / "prompts.jsonl",
            "".join(
                json.dumps({"text": f"{a} {b}"}) + "\n"
                for a in ("Once upon", "The big", "A little")
                for b in ("a time", "dog", "bird", "cat")
            ),
        )
        spill(self.template / "outside/precious.txt", "precious\n")
        for command in (
            ["distill"],
            ["train", "--set", "train.stages=[heads, joint]", "--set", "train.joint.lora.rank=4"],
            ["calibrate"],
            ["calibrate", "--layers"],
            ["build-store"],
            ["make-draft"],
            ["generate", "--compare", "--prompt", "Once"],
            ["bench", "--questions", "prompts.jsonl", "--limit", "1"],
            ["dataset", "export", "text.jsonl"],
            ["export", "--format", "fasterdecoding", "--output", "heads-pt"],
            ["export", "--format", "vllm", "--output", "heads-vllm"],
        ):
            self.medusa_in(self.template, *command, *CONFIG)

    def fresh(self):
        if self.place.exists():
            for path in self.place.rglob("*"):
                if path.is_dir() and not path.is_symlink():
                    os.chmod(path, 0o700)
            shutil.rmtree(self.place)
        shutil.copytree(self.template, self.place, symlinks=True)

    def fail(self, kind, name, faults):
        self.failures[kind] += 1
        print(f"{kind} | {name} | {'; '.join(faults)[:600]}", flush=True)

    def run(self, kind, case):
        self.counts[kind] += 1
        self.fresh()
        company = case.prepare(self.place) if case.prepare else None
        before = snapshot(self.place)
        out, err = self.work / "out", self.work / "err"
        modes = {
            "n": ("/dev/null", "r+b"),
            "c": ("/dev/null", "r+b"),
            "F": ("/dev/full", "wb"),
            "o": (out, "wb"),
            "f": (err, "wb"),
        }
        streams = [broken_pipe() if mode == "b" else open(*modes[mode]) for mode in case.streams]

        def limit():
            for number in (signal.SIGPIPE, signal.SIGINT):  # a shell's background jobs ignore the second
                signal.signal(number, signal.SIG_DFL)
            for what, most in case.limits:
                resource.setrlimit(what, (most, most))
            for number, mode in enumerate(case.streams):
                if mode == "c":
                    os.close(number)

        used = cpu_seconds()
        program = subprocess.Popen(
            [self.medusa, *case.args],
            cwd=self.place,
            env=self.environment,
            preexec_fn=limit,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
        )
        for stream in streams:
            stream.close()
        faults, signalled = [], False
        for seconds, number in [*([case.signal] if case.signal else []), (PATIENCE, signal.SIGTERM), (PATIENCE, signal.SIGKILL)]:
            if ends(program, seconds):
                break
            program.send_signal(number)
            if signalled:
                faults.append(f"does not end within {PATIENCE} s of a signal")
            elif not case.signal and not case.endless:
                faults.append(f"does not end within {PATIENCE} s")
            signalled = True
        code = program.wait()
        if hasattr(company, "end"):
            faults += company.end()
        elif cpu_seconds() - used > MOST_CPU_SECONDS and not case.endless:
            faults.append(f"takes {cpu_seconds() - used:.1f} s of CPU time")
        if code < 0 and signalled and not err.read_bytes():
            code = 128 - code  # it had not yet begun
        if code not in case.codes and not (signalled and code in (130, 143)) and not (code == -signal.SIGPIPE and "b" in case.streams):
            faults.append(f"exit code {code}")
        if case.streams[2] == "f":
            faults += message_faults(code, err.read_bytes())
        faults += file_faults(before, snapshot(self.place), code, signalled, case.writes) + device_faults()
        if self.shows:
            print(f"{kind} | {case.name} | {code} {err.read_bytes()[-300:]!r}", flush=True)
        if faults:
            self.fail(kind, case.name, faults)


def ends(program, seconds):
    """Whether it ends in so many seconds, not counting those in which it waited for a core."""
    begin, before = time.monotonic(), seconds_in_queue(program)
    while time.monotonic() - begin - seconds_in_queue(program) + before < seconds:
        try:
            program.wait(min(seconds, 0.1))
            return True
        except subprocess.TimeoutExpired:
            pass
    return False


def seconds_in_queue(program):
    try:
        return int(pathlib.Path(f"/proc/{program.pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # it has ended, or the kernel does not say
        return 0


def broken_pipe():
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "wb")


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def snapshot(folder):
    """Type, size, time and inode of every file under the folder."""
    found = {}
    for path in folder.rglob("*"):
        about = path.lstat()
        kind = stat.S_IFMT(about.st_mode)
        found[str(path.relative_to(folder))] = (kind,) if kind == stat.S_IFDIR else (kind, about.st_size, about.st_mtime_ns, about.st_ino)
    return found


def message_faults(code, err):
    faults = []
    message = err[err.rfind(b"medusa: ") :] if b"medusa: " in err else b""
    if code == 2 and b"; " not in message:
        faults.append(f"no message with what to do: {message[-200:]!r}")
    for what, found in (("internals", INTERNALS.search(err)), ("a control byte", CONTROL.search(err))):
        if found:
            faults.append(f"prints {what}: {err[max(0, found.start() - 80):found.end() + 80]!r}")
    if len(err) > 20000:
        faults.append(f"prints {len(err)} bytes")
    if err.decode(errors="replace").encode() != err:
        faults.append("prints bytes that are not UTF-8")
    return faults


def file_faults(before, after, code, signalled, writes):
    faults = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new or path.split("/")[0] in writes or path in writes:
            continue
        if not path.startswith("runs"):
            faults.append(f"touched {path}")
        elif old and code != 0 and not signalled and not REWRITTEN.search(path):
            faults.append(f"{'changed' if new else 'lost'} {path}")
        elif new and ".part" in path and not signalled:
            faults.append(f"left {path}")
    return faults


def device_faults():
    faults = []
    for path, about in DEVICES.items():
        now = os.lstat(path)
        if (now.st_mode, now.st_rdev) != (about.st_mode, about.st_rdev):
            faults.append(f"replaced {path}")
            os.unlink(path)
            os.mknod(path, about.st_mode, about.st_rdev)
    return faults


def attack_server(attack, requests):
    attack.fresh()
    server = subprocess.Popen(
        [attack.medusa, "serve", *CONFIG, "--port", "0", "--json"],
        cwd=attack.place,
        env=attack.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    port = int(json.loads(server.stdout.readline())["url"].rsplit(":", 1)[1])

    def answer(request):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            try:
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                got = b"".join(iter(lambda: client.recv(65536), b""))
                return re.sub(rb"\AHTTP/1\.1 102 .*?\r\n\r\n", b"", got, flags=re.DOTALL)  # asks whether somebody still reads
            except OSError as error:
                return repr(error).encode()

    for name, request in requests:
        attack.counts["http"] += 1
        got = answer(request)
        healthy = answer(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200")
        if re.match(rb"HTTP/1.1 5(?!01)", got) or INTERNALS.search(got) or not healthy or b"timed out" in got:
            attack.fail("http", name, [repr(got[-300:]), "" if healthy else "the server is gone"])
    server.terminate()
    if server.wait(PATIENCE) not in (0, 130, 143):
        attack.fail("http", "SIGTERM", [f"exit code {server.returncode}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--medusa", default=ROOT / "build/release/medusa", type=pathlib.Path)
    parser.add_argument("--kinds", default=",".join([*KINDS, "http"]), help="%(default)s")
    parser.add_argument("--every", default=1, type=int, help="run every Nth case only")
    parser.add_argument("--seed", default=0, type=int, help="of what is drawn (%(default)s)")
    parser.add_argument("--only", default="", help="run only cases whose name holds this")
    parser.add_argument("--show", action="store_true", help="print how each case ended")
    arguments = parser.parse_args()
    hostile_inputs.SEED = arguments.seed
    first = arguments.seed % arguments.every
    taken = lambda cases: itertools.islice(cases, first, None, arguments.every)
    with tempfile.TemporaryDirectory() as work:
        attack = Attack(arguments.medusa.resolve(), pathlib.Path(work), arguments.show)
        for kind in arguments.kinds.split(","):
            if kind == "http":
                attack_server(attack, (each for each in taken(hostile_requests()) if arguments.only in each[0]))
                continue
            for case in taken(KINDS[kind](attack)):
                if arguments.only in case.name:
                    attack.run(kind, case)
    for kind, count in attack.counts.items():
        print(f"{kind}: {count} cases, {attack.failures[kind]} failed")
    sys.exit(1 if attack.failures else 0)


main()
