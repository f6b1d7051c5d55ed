#!/usr/bin/env python3
"""Keeps one artifact of each kind, as this version of the program writes it, for the tests of all later versions.

    tools/dev/keep_artifacts.py          # writes tests/golden/artifacts/<version>/

Run it before a release, and never again for that version: what was released is what users have. tests/cli/kept_artifacts_test.cpp
reads every version's folder.
"""

import json
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEDUSA = ROOT / "build/release/medusa"
RUN_YAML = """run: run
seed: 3
backbone: {model: model.gguf, threads: 1, context: 256, chat_template: plain}
distill: {prompts: [prompts.jsonl], max_new_tokens: 24, batch: 4, shard_samples: 4}
train:
  epochs: 2
  batch_positions: 64
  warmup_steps: 2
  validation_fraction: 0.25
  checkpoint_every: 3
  heads: {num_heads: 2, input: hidden, output: shared}
calibrate: {top_k: 5, nodes: 6, context: 32, repeats: 3, race_prompts: 0}
generate: {max_new_tokens: 24}
"""
PROMPTS = ["Once upon a time", "Lily and Tom", "The big dog", "One day, a boy", "Mom said", "In the park"]
COMMANDS = [["distill"], ["train"], ["calibrate"], ["build-store", "--all"], ["bench", "--questions", "prompts.jsonl"],
            ["generate", "--questions", "prompts.jsonl", "--compare"]]
LEFT_OUT = {"report.html", "bench.html", "events.out.tfevents.medusa"}  # nothing reads them back


def main():
    version = subprocess.run([MEDUSA, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    kept = ROOT / "tests/golden/artifacts" / version
    with tempfile.TemporaryDirectory() as temp:
        place = pathlib.Path(temp)
        shutil.copy(ROOT / "tests/golden/tiny_model.gguf", place / "model.gguf")
        (place / "run.yaml").write_text(RUN_YAML, encoding="utf-8")
        (place / "prompts.jsonl").write_text("".join(json.dumps({"text": p}) + "\n" for p in PROMPTS), encoding="utf-8")
        for command in COMMANDS:
            subprocess.run(["medusa", *command, "--config", "run.yaml"], executable=MEDUSA, cwd=place, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(place, kept, ignore=lambda _, names: LEFT_OUT.intersection(names) | {"model.gguf"}.intersection(names))
    for file in sorted(p for p in kept.rglob("*") if p.is_file()):
        print(f"{file.stat().st_size:8} {file.relative_to(ROOT)}")
        for folder in (place, ROOT):
            assert str(folder).encode() not in file.read_bytes(), f"{file} names {folder}"


if __name__ == "__main__":
    main()
