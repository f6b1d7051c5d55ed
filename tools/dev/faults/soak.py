#!/usr/bin/env python3
"""Runs commands in a random order for a long time, beside a server that answers all the while.

    python3 tools/dev/faults/soak.py --minutes 60 [--medusa build/asan/medusa] [--seed 1] [--page FILE]

Meant for a program that was built with AddressSanitizer. Every command must end with status 0, and every answer of the server
must be the one that the server gave to the same question before. The server's memory is read once a minute: in the second half of
the time it may grow by a twentieth and 16 MB. Exit status 1 if anything of this failed.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from medusa_server import MEDUSA, MedusaServer
from tiny_runs import MODEL, PROMPTS, RUN_YAML

DRAFTERS = ["none", "medusa", "prompt_lookup", "merge", "retrieval", "lookahead", "jacobi", "draft_model"]
RULES = {"greedy": 0, "match": .8, "typical": .7, "rejection": .9}
PATIENCE = 600  # seconds


def command(draw, folder):
    """A command that must succeed, with its name."""
    drafter, rule = draw.choice(DRAFTERS), draw.choice(list(RULES))
    decoding = ["--drafter", drafter, "--rule", rule, "--temperature", str(RULES[rule]), "--seed", str(draw.randrange(9))]
    fresh = folder / f"out-{draw.randrange(10 ** 9)}"
    kinds = {
        "distill": ["distill", "--fresh"],
        "train": ["train", "--fresh"],
        "resume": ["train"],
        "calibrate": ["calibrate"],
        "build-store": ["build-store"],
        "make-draft": ["make-draft", "--fresh"],
        "export": ["export", "--format", draw.choice(["fasterdecoding", "vllm", "medusa-2"]), "--output", str(fresh)],
        "inspect": ["inspect", draw.choice(["runs/tiny/dataset", "runs/tiny/heads", "runs/tiny/tree.yaml", "model.gguf"])],
        "generate": ["generate", draw.choice(PROMPTS), "--max-tokens", "40", *decoding],
        "compare": ["generate", draw.choice(PROMPTS), "--max-tokens", "20", "--compare"],
        "bench": ["bench", "--questions", "prompts.jsonl", "--limit", "3", "--max-tokens", "16", "--methods", "medusa,merge",
                  "--batch", str(draw.choice([1, 4])), "--out", str(fresh)],
        "profile": ["profile"],
        "report": ["report"],
    }
    name = draw.choice(list(kinds))
    args = kinds[name]
    return name, args if name == "inspect" else [*args, "--config", "run.yaml"]


def question(draw):
    body = {"prompt": draw.choice(PROMPTS), "max_tokens": draw.choice([8, 24, 60]), "temperature": draw.choice([0, .8]),
            "seed": draw.randrange(4), "ignore_eos": True}
    if draw.random() < .3:
        body["logprobs"] = 2
    if draw.random() < .3:
        body["presence_penalty"] = 1
    return body, draw.choice([None, "none", "prompt_lookup", "merge"])


class Asking(threading.Thread):
    """A client that asks until the end."""

    def __init__(self, server, seed, end, known, lock):
        super().__init__()
        self.server, self.draw, self.end, self.known, self.lock = server, random.Random(seed), end, known, lock
        self.count, self.wrong = 0, []

    def run(self):
        while time.monotonic() < self.end:
            body, drafter = question(self.draw)
            try:
                if self.draw.random() < .1:  # leaves in the middle
                    connection = self.server.connect()
                    connection.request("POST", "/v1/completions", '{"prompt": "Once", "max_tokens": 200, "stream": true}',
                                       {"Content-Type": "application/json"})
                    connection.getresponse().read(20)
                    connection.close()
                    continue
                asked = dict(body, medusa={"drafter": drafter}) if drafter else body
                choice = self.server.ask("/v1/completions", asked)["choices"][0]
            except Exception as error:  # noqa: BLE001: whatever it is, it is a failure
                self.wrong.append(f"{body}: {error!r}")
                return
            answer = (choice["text"], choice["finish_reason"])
            with self.lock:
                expected = self.known.setdefault(repr(body), answer)
            if answer != expected:
                self.wrong.append(f"{asked}: {answer} for {expected}")
            self.count += 1


def memory(process):
    """MB that it holds, its file mappings left out."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--medusa", default=MEDUSA)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    medusa = str(pathlib.Path(options.medusa).resolve())
    draw = random.Random(options.seed)
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    os.environ["OMP_NUM_THREADS"] = "1"
    # AddressSanitizer's own memory must not look like a leak. It keeps 256 MB of freed memory by default, which fill for most of an
    # hour. It keeps each allocation's stack, too, and behind code without frame pointers, such as LibTorch's, the third frame is any
    # number: there is always another stack.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8:malloc_context_size=2"
    runs, seconds, failed = collections.Counter(), collections.Counter(), []

    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "run.yaml").write_text(RUN_YAML.replace("model.gguf", str(folder / "model.gguf")))
        (folder / "model.gguf").symlink_to(MODEL)
        (folder / "prompts.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in PROMPTS))

        def run(name, args):
            began = time.monotonic()
            done = subprocess.run([medusa, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE,
                                  check=False)
            runs[name] += 1
            seconds[name] += time.monotonic() - began
            if done.returncode != 0 or "Sanitizer" in done.stderr:
                failed.append(f"{' '.join(args)}: status {done.returncode}: {done.stderr[-1500:]}")
                print(failed[-1], flush=True)

        for first in ("distill", "train", "calibrate", "build-store", "make-draft"):
            run(first, [first, "--config", "run.yaml"])
        if failed:
            return 1
        began = time.monotonic()
        end = began + 60 * options.minutes
        sizes, known, lock = [], {}, threading.Lock()
        with MedusaServer([folder / "model.gguf", "--set", "generate.shared.megabytes=4", "--set", "backbone.chat_template=plain",
                           "--threads", "1"], medusa) as server:
            askers = [Asking(server, options.seed + i, end, known, lock) for i in range(options.clients)]
            for asker in askers:
                asker.start()
            while time.monotonic() < end:
                run(*command(draw, folder))
                if time.monotonic() - began > 60 * len(sizes):
                    sizes.append(memory(server.process))
                    print(f"{len(sizes)} min: {sum(runs.values())} commands, {sum(a.count for a in askers)} answers, "
                          f"{sizes[-1]:.0f} MB, {len(failed)} failed", flush=True)
            for asker in askers:
                asker.join()
                failed += asker.wrong
        half = sizes[len(sizes) // 2:] or [0]
        grown = half[-1] - half[0]
        if grown > half[0] / 20 + 16:
            failed.append(f"the server's memory grew by {grown:.0f} MB in the second half")
        answers = sum(asker.count for asker in askers)

    version = subprocess.run([medusa, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    lines = [f"{options.minutes:g} minutes, {version}, seed {options.seed}: {sum(runs.values())} commands, {answers} answers of the",
             f"server, {len(failed)} failed. The server's memory: {sizes[0]:.0f} MB in the first minute, {half[0]:.0f} in the middle,",
             f"{half[-1]:.0f} at the end.", "", "| command | runs | seconds each |", "|---|---|---|"]
    lines += [f"| {name} | {count} | {seconds[name] / count:.1f} |" for name, count in sorted(runs.items())]
    text = re.sub(r" +$", "", "\n".join(lines), flags=re.M) + "\n"
    print(text)
    for each in failed:
        print(each)
    if options.page:
        options.page.write_text("# Commands and a server for an hour\n\nGenerated by `tools/dev/faults/soak.py`.\n\n" + text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
