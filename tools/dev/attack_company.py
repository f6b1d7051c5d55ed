"""Cases of tools/dev/attack.py in which the program is not alone: others on the network, a second command, a command that was killed."""

import itertools
import os
import signal
import socket
import subprocess
import threading

from attack_cases import CONFIG, NEW_RUN, Case
from hostile_inputs import seeded

TRAIN = ["train", *NEW_RUN, "--set", "train.peer_timeout_s=1"]
COMMANDS = {
    "distill": ["distill", *CONFIG, "--set", "run=runs/new"],
    "train": ["train", *NEW_RUN, "--set", "train.epochs=6", "--set", "train.checkpoint_every=3"],
    "joint": ["train", *NEW_RUN, "--set", "train.stages=[joint]", "--set", "train.joint.lora.rank=4"],
    "make-draft": ["make-draft", *CONFIG, "--set", "draft.layers=1"],
    "calibrate": ["calibrate", *CONFIG],
    "build-store": ["build-store", *CONFIG],
    "bench": ["bench", *CONFIG, "--questions", "prompts.jsonl", "--limit", "1"],
    "export": ["export", *CONFIG, "--format", "vllm", "--output", "new"],
    "dataset import": ["dataset", "import", "text.jsonl", *CONFIG, "--set", "run=runs/new"],
    "report": ["report", *CONFIG],
}


class Stranger:
    """Somebody on the network: one that answers those who connect, or one that connects to a port again and again."""

    def __init__(self, says, port=None):
        self.says, self.ended, self.links = says, threading.Event(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = port or self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.connect if port else self.answer)
        self.thread.start()

    def answer(self):
        self.listener.settimeout(0.1)
        while not self.ended.is_set():
            try:
                self.talk(self.listener.accept()[0])
            except OSError:
                pass

    def connect(self):
        while not self.ended.wait(0.02):
            try:
                self.talk(socket.create_connection(("127.0.0.1", self.port), 1))
            except OSError:
                pass

    def talk(self, link):
        self.links.append(link)
        if self.says is None:
            link.close()
        elif self.says:
            link.sendall(self.says)

    def end(self):
        self.ended.set()
        self.thread.join()
        for link in [self.listener, *self.links]:
            link.close()
        return []


class Second:
    """Another command of ours in the same folder."""

    def __init__(self, attack, args, folder):
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self.process = subprocess.Popen([attack.medusa, *args], cwd=folder, env=attack.environment, **nothing)

    def end(self):
        code = self.process.wait()
        return [] if code in (0, 2) else [f"exit code {code} of the second command"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def peer_cases(_):
    """Several processes' training, with a stranger in the place of the first one, or at its door."""
    draw = seeded("peers")
    words = {
        "nothing": b"",
        "the end": None,
        "HTTP": b"HTTP/1.1 200 OK\r\n\r\n",
        "zeros": bytes(4096),
        "ones": b"\xff" * 4096,
        "a long text": b"\0\0\0\0\xff\xff\xff\x7f" * 512,
        **{f"noise {number}": draw.randbytes(draw.choice((1, 7, 8, 9, 40, 41, 100, 5000))) for number in range(18)},
    }
    for (name, says), rank in itertools.product(words.items(), (0, 1)):
        port = free_port() if rank == 0 else None
        environment = {"WORLD_SIZE": "2", "RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}

        def meet(_):
            stranger = Stranger(says, port)
            environment["MASTER_PORT"] = str(stranger.port)
            return stranger

        yield Case(f"as number {rank}, a stranger says {name}", TRAIN, meet, codes=(2,), environment=environment)
        if name in ("nothing", "the end", "HTTP", "noise 0"):  # patient, and ended
            told = f"as number {rank}, ended while a stranger says {name}"
            yield Case(told, ["train", *NEW_RUN], meet, signal=(1, signal.SIGTERM), environment=environment)
    for key, value in itertools.product(
        ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"),
        ("", "-1", "x", "0", "99999999999999999999", "2", "1.5", os.fsdecode(b"\xff"), "\x1b]0;x\x07", "256.1.1.1"),
    ):
        environment = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": str(free_port()), key: value}
        yield Case(f"{key}={value!r}", TRAIN, environment=environment)


def pair_cases(attack):
    """Two commands in one run at the same time."""
    for (name, args), (other, others) in itertools.product(COMMANDS.items(), repeat=2):
        yield Case(f"{name} beside {other}", args, lambda folder: Second(attack, others, folder), writes=("new", "runs"))


def killed_cases(attack):
    """Killed at a drawn moment, then started again: it must end well."""
    draw = seeded("killed")
    for name, args in itertools.product(COMMANDS, range(6)):
        seconds, args = draw.uniform(0.05, 0.8), COMMANDS[name]

        def kill(folder):
            try:
                attack.medusa_in(folder, *args, check=False, timeout=seconds)
            except subprocess.TimeoutExpired:
                pass

        # A folder that is finished is not exported or imported into again.
        codes = (0, 2) if name in ("export", "dataset import") else (0,)
        yield Case(f"{name}, killed after {seconds:.2f} s, again", args, kill, codes=codes)


KINDS = {"peers": peer_cases, "pairs": pair_cases, "killed": killed_cases}
