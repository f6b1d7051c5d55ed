"""medusa beside transformers and llama.cpp: greedy answers to the same questions by the same model,
timed in turns.

Development only. Needs: pip install torch==2.11.0 transformers==5.23.0 accelerate gguf llama-cpp-python
Run:   tools/demo.sh, then
       python tools/dev/bench_peers.py build/release/medusa configs/demo.yaml MODEL.gguf QUESTIONS.jsonl [--limit N]
       [--stored-only: the file's own blocks alone, for models of which three copies are too many]
       [--plain-only: no heads, which then need not be there]

One round is one question, answered by every side; the sides take turns in going first. Prefill is
counted, loading and the first, warming round are not. llama.cpp reads the file as it is and two
copies of its weights, in BF16 and Q8_0, made here (the Python around its passes took 3 % of the
time of 80 tokens); transformers reads the first of these. medusa's heads and its tree for bfloat16
are the run's, the tree for the file's own blocks is calibrated first. Prints a table on stderr and
one JSON object: medians, and of each pair that is compared the median of the rounds' ratios with
quartiles.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import llama_cpp
import torch
import transformers
from bench_transformers import Transformers, quartiles, read_questions
from gguf_copy import write_copy

# What is compared: ours, theirs.
PAIRS = [("plain, bfloat16", "transformers, bfloat16"),
         ("plain, bfloat16", "llama.cpp, BF16"),
         ("plain, int8", "llama.cpp, Q8_0"),
         ("plain, stored", "llama.cpp, as it is"),
         ("Medusa, bfloat16", "transformers, bfloat16"),
         ("Medusa, bfloat16", "llama.cpp, as it is"),
         ("Medusa, stored", "llama.cpp, as it is"),
         ("Medusa, stored", "plain, stored"),
         ("merge, bfloat16", "llama.cpp, as it is"),
         ("merge, stored", "llama.cpp, as it is")]


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("medusa", type=pathlib.Path)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("questions", type=pathlib.Path)
    parser.add_argument("--limit", type=int, help="only the first N questions")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--stored-only", action="store_true", help="no copies, no bfloat16")
    parser.add_argument("--plain-only", action="store_true", help="no Medusa, no merge")
    settings = parser.parse_args()
    settings.batch, settings.seed = 1, 1  # for Transformers
    return settings


class LlamaCpp:
    def __init__(self, settings: argparse.Namespace, file: pathlib.Path):
        self.settings = settings
        self.model = llama_cpp.Llama(str(file), n_ctx=2048, n_threads=settings.threads,
                                     n_threads_batch=settings.threads, verbose=False)

    def answer(self, questions: list[str]) -> tuple[int, float]:
        self.model.reset()  # nothing is kept of the last prompt
        started = time.perf_counter()
        result = self.model.create_chat_completion(
            [{"role": "user", "content": questions[0]}], temperature=0.0,
            max_tokens=self.settings.max_new_tokens)
        return result["usage"]["completion_tokens"], time.perf_counter() - started


class Medusa:
    """Our program, started anew for every answer; it times itself."""

    def __init__(self, settings: argparse.Namespace, folder: pathlib.Path, *changes: str):
        self.settings = settings
        self.prompts = folder / "question.jsonl"
        self.changes = [f"backbone.model={settings.model}", f"backbone.threads={settings.threads}",
                        f"generate.max_new_tokens={settings.max_new_tokens}", *changes]

    def run(self, command: str, *words: str) -> str:
        sets = [word for change in self.changes for word in ("--set", change)]
        done = subprocess.run([self.settings.medusa, command, "--config", self.settings.config,
                               *sets, *words], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return done.stdout

    def answer(self, questions: list[str]) -> tuple[int, float]:
        self.prompts.write_text(json.dumps({"text": questions[0]}) + "\n", encoding="utf-8")
        out = json.loads(self.run("generate", "--questions", str(self.prompts), "--json"))
        stats = out["answers"][0]["stats"]
        return stats["emitted"], stats["prefill_s"] + stats["decode_s"]


def open_sides(settings: argparse.Namespace, folder: pathlib.Path) -> dict:
    sides = {"llama.cpp, as it is": LlamaCpp(settings, settings.model)}
    dtypes = ("stored",) if settings.stored_only else ("bfloat16", "int8", "stored")
    if not settings.stored_only:
        for name in ("BF16", "Q8_0"):
            write_copy(settings.model, name, folder / f"{name}.gguf")
            sides[f"llama.cpp, {name}"] = LlamaCpp(settings, folder / f"{name}.gguf")
        sides["transformers, bfloat16"] = Transformers(settings, folder / "BF16.gguf")
    for dtype in dtypes:
        sides[f"plain, {dtype}"] = Medusa(settings, folder, f"backbone.dtype={dtype}",
                                          "generate.drafter=none")
    if settings.plain_only:
        return sides
    stored = ("backbone.dtype=stored", f"generate.tree={folder}/tree.yaml")
    Medusa(settings, folder, *stored).run("calibrate")
    for name, drafter in (("Medusa", "medusa"), ("merge", "merge")):
        change = f"generate.drafter={drafter}"
        if not settings.stored_only:
            sides[f"{name}, bfloat16"] = Medusa(settings, folder, "backbone.dtype=bfloat16", change)
        sides[f"{name}, stored"] = Medusa(settings, folder, *stored, change)
    return sides


def main() -> None:
    settings = read_settings()
    questions = read_questions(settings)
    with tempfile.TemporaryDirectory() as folder:
        sides = open_sides(settings, pathlib.Path(folder))
        rates = {name: [] for name in sides}
        names = list(sides)
        for number, question in enumerate([questions[0], *questions]):  # the first one warms up
            first = number % len(names)
            for name in names[first:] + names[:first]:
                tokens, seconds = sides[name].answer([question])
                if number > 0:
                    rates[name].append(tokens / seconds)
            print(f"round {number} of {len(questions)}", file=sys.stderr)
    ratios = {}
    for ours, theirs in [pair for pair in PAIRS if rates.keys() >= set(pair)]:
        rounds = [a / b for a, b in zip(rates[ours], rates[theirs])]
        ratios[f"{ours} ÷ {theirs}"] = [round(value, 2) for value in quartiles(rounds)]
    medians = {name: round(statistics.median(values), 1) for name, values in rates.items()}
    for name, value in medians.items():
        print(f"{name:<26}{value:>8.1f} tokens/s", file=sys.stderr)
    for name, (low, middle, high) in ratios.items():
        print(f"{name:<50}{middle:>6.2f}  ({low:.2f} to {high:.2f})", file=sys.stderr)
    print(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__,
                      "llama_cpp_python": llama_cpp.__version__, "model": settings.model.name,
                      "threads": settings.threads, "rounds": len(questions),
                      "tokens_per_s": medians, "ratios_quartiles": ratios}))


if __name__ == "__main__":
    main()
