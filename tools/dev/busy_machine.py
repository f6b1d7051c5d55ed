#!/usr/bin/env python3
"""How decoding fares beside other busy processes: its speed against its fair share of the CPUs.

    tools/dev/busy_machine.py --neighbors 1,2,4,8 -- --config configs/demo.yaml
    tools/dev/busy_machine.py --drafters none -- models/my-llama.gguf

Neighbors are processes that count for ever. Among C CPUs T threads beside N of them are due min(1, C / (T + N)) of what
they get alone. Every round runs each number of neighbors once for each drafter, and once without any; a share is taken
against the run without any of the same round. Prints a table of medians with their least and greatest; run it where
nothing else runs.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys

from medusa_server import MEDUSA

GOAL = .8  # of the fair share
PROMPT = "Tell me a long story about a sailor who finds an island."


@contextlib.contextmanager
def busy(count):
    neighbors = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for neighbor in neighbors:
            neighbor.kill()
            neighbor.wait()


def rate(options, drafter):
    """Tokens a second of decoding, the prompt left out."""
    command = [options.medusa, "generate", *options.generate, "--prompt", PROMPT, "--json", "--drafter", drafter,
               "--threads", str(options.threads), "--max-tokens", str(options.tokens)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(ran.stderr)
    stats = json.loads(ran.stdout)["answers"][0]["stats"]
    return stats["emitted"] / stats["decode_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generate", nargs="+", help="what medusa generate gets, behind --")
    parser.add_argument("--medusa", default=MEDUSA)
    parser.add_argument("--drafters", default="none,medusa")
    parser.add_argument("--neighbors", default="1,2,4,8")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    numbers = [int(number) for number in options.neighbors.split(",")]
    shares = {(drafter, number): [] for drafter in options.drafters.split(",") for number in numbers}
    for _ in range(options.rounds):
        alone = {drafter: rate(options, drafter) for drafter in options.drafters.split(",")}
        for drafter, number in shares:
            with busy(number):
                fair = min(1, cpus / (options.threads + number))
                shares[drafter, number].append(rate(options, drafter) / alone[drafter] / fair)
    print(f"{options.threads} threads on {cpus} CPUs; speed ÷ fair share of the speed alone, "
          f"median (least–greatest) of {options.rounds} rounds\n")
    print(f"| drafter | {' | '.join(f'{number} busy' for number in numbers)} |\n|---{'|---' * len(numbers)}|")
    for drafter in options.drafters.split(","):
        cells = (shares[drafter, number] for number in numbers)
        print(f"| {drafter} | " + " | ".join(
            f"{statistics.median(cell):.2f} ({min(cell):.2f}–{max(cell):.2f})" for cell in cells) + " |")
    below = [key for key, cell in shares.items() if statistics.median(cell) < GOAL]
    for drafter, number in below:
        print(f"{drafter} beside {number}: below {GOAL} of the fair share")
    sys.exit(1 if below else 0)


if __name__ == "__main__":
    main()
