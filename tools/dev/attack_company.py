"""Cases of tools/dev/attack.py in which the program is not alone: a second command, a command that was killed."""

import itertools
import subprocess

from attack_cases import CONFIG, NEW_RUN, Case
from hostile_inputs import seeded

COMMANDS = {
    "distill": ["distill", *CONFIG, "--set", "run=runs/new"],
    "train": ["train", *NEW_RUN, "--set", "train.epochs=6", "--set", "train.checkpoint_every=3"],
    "joint": ["train", *NEW_RUN, "--set", "train.stages=[joint]", "--set", "train.joint.lora.rank=4"],
    "make-draft": ["make-draft", *CONFIG, "--fresh", "--set", "draft.layers=1"],
    "calibrate": ["calibrate", *CONFIG],
    "build-store": ["build-store", *CONFIG],
    "bench": ["bench", *CONFIG, "--questions", "prompts.jsonl", "--limit", "1"],
    "export": ["export", *CONFIG, "--format", "vllm", "--output", "new"],
    "dataset import": ["dataset", "import", "text.jsonl", *CONFIG, "--set", "run=runs/new"],
    "report": ["report", *CONFIG],
}


class Second:
    """Another command of ours in the same folder."""

    def __init__(self, attack, args, folder):
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self.process = subprocess.Popen([attack.medusa, *args], cwd=folder, env=attack.environment, **nothing)

    def end(self):
        code = self.process.wait()
        return [] if code in (0, 2) else [f"exit code {code} of the second command"]


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


KINDS = {"pairs": pair_cases, "killed": killed_cases}
