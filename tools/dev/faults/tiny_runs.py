"""The commands of the fault matrix, and the small runs that they work in."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2].parent
MODEL = ROOT / "tests/golden/tiny_model.gguf"
RUN_YAML = """run: runs/tiny
seed: 3
backbone: {model: model.gguf, threads: 1, context: 256, chat_template: plain}
distill: {prompts: [prompts.jsonl], max_new_tokens: 24, batch: 4, shard_samples: 4}
train:
  epochs: 2
  keep_best: true
  batch_positions: 64
  warmup_steps: 2
  validation_fraction: 0.25
  checkpoint_every: 3
  keep_checkpoints: 2
  heads: {num_heads: 2, input: hidden, output: shared}
  joint: {lora: {rank: 2}, batch_tokens: 100, guard: {samples: 2, greedy_tokens: 8}}
calibrate: {top_k: 5, nodes: 6, context: 32, repeats: 3, race_prompts: 0}
draft: {layers: 2, epochs: 1, batch_tokens: 200}
"""
PROMPTS = [f"{a} {b}" for a in ("Once upon", "The big", "A little") for b in ("a time", "dog", "bird", "cat")]


def setting(*pairs):
    return [word for pair in pairs for word in ("--set", pair)]


TUNED = ["--model", "runs/tiny/joint/model", "--heads", "runs/tiny/joint/heads"]


@dataclasses.dataclass(frozen=True)
class Command:
    """One row of the table."""

    name: str
    args: tuple
    before: tuple  # commands that make the folder it starts in, its old artifact included
    removed: tuple = ()  # of what these left
    swaps: bool = True  # names, and gives files second names
    only_new: bool = False  # refuses to replace what is there


DISTILL, TRAIN = ("distill",), ("train",)
OLD_HEADS = ("train", *setting("seed=4"))
JOINT = ("train", *setting("train.stages=[joint]"))
OLD_JOINT = ("train", *setting("train.stages=[joint]", "train.joint.lora.rank=1"))
OLD_DRAFT = ("make-draft", *setting("draft.layers=1"))


def commands():
    with_heads, joint, draft = (DISTILL, OLD_HEADS), (DISTILL, TRAIN, OLD_JOINT), (DISTILL, OLD_DRAFT)
    yield Command("distill", DISTILL, ())
    for swaps in (True, False):
        kind = "" if swaps else ", no swap"
        yield Command("train, stage heads" + kind, TRAIN, with_heads, ("runs/tiny/train",), swaps)
        yield Command("train, stage joint" + kind, JOINT, joint, ("runs/tiny/joint/train",), swaps)
        yield Command("make-draft" + kind, ("make-draft",), draft, ("runs/tiny/draft-train",), swaps)
    yield Command("calibrate", ("calibrate",), (DISTILL, TRAIN, ("calibrate", *setting("calibrate.nodes=4"))))
    yield Command("build-store", ("build-store",), (DISTILL, ("build-store", "--all")))
    for name, more in (("fasterdecoding", []), ("vllm", []), ("medusa-2", [])):
        yield Command(f"export, {name}", ("export", "--format", name, "--output", "new", *more), (DISTILL, TRAIN), only_new=True)
    folder = ("export", "--format", "medusa-2", "--output", "new", *TUNED)
    yield Command("export, medusa-2 of a folder", folder, (DISTILL, JOINT), only_new=True)


class Program:
    """The program, started in a folder."""

    def __init__(self, medusa, shim):
        self.medusa, self.shim = str(medusa), str(shim)

    def arguments(self, args):
        return [self.medusa, *args, "--config", "run.yaml"]

    def environment(self, folder, swaps, log=None, kept=None, at=None, kind=None):
        """@param log, kept, at, kind  as tests/faults/fault_shim.cpp takes them."""
        values = {"FAULT_FOLDER": folder, "FAULT_LOG": log, "FAULT_BYTES": kept, "FAULT_AT": at, "FAULT_KIND": kind}
        values["FAULT_NO_SWAP"] = None if swaps else "1"
        given = {name: str(value) for name, value in values.items() if value is not None}
        return {**os.environ, "OMP_NUM_THREADS": "1", "LD_PRELOAD": self.shim, **given}

    def run(self, folder, args, swaps=True, timeout=None, **fault):
        """@returns  exit status (negative: the signal that ended it) and what it said."""
        process = subprocess.Popen(
            self.arguments(args),
            cwd=folder,
            env=self.environment(folder, swaps, **fault),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            said = process.communicate(timeout=timeout)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[1]
        return process.returncode, said.decode(errors="replace")

    @staticmethod
    def allow_replacing(progress):
        """As --fresh does: the old heads beside this folder of progress may be replaced."""
        manifest = progress.parent / "heads" / "manifest.yaml"
        if progress.name != "train" or not manifest.exists():
            return
        fingerprint = next(line.split()[1] for line in manifest.read_text().splitlines() if line.startswith("fingerprint:"))
        progress.mkdir()
        (progress / "replaceable").write_text(fingerprint)

    def prepare(self, folder, command):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "run.yaml").write_text(RUN_YAML)
        (folder / "prompts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in PROMPTS))
        shutil.copy(MODEL, folder / "model.gguf")
        for args in command.before:
            status, said = self.run(folder, args)
            if status != 0:
                raise SystemExit(f"{' '.join(args)}: exit status {status} without a fault: {said}")
        for path in command.removed:
            shutil.rmtree(folder / path)
            self.allow_replacing(folder / path)
