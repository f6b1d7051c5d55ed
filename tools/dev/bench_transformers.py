"""medusa's plain decoding, or its distillation, against transformers' generate: tokens per second,
both in bfloat16 on the same machine, timed in turns. transformers reads a BF16 copy of the file,
made here: from blocks it would compute in float32.

Development only. Needs: pip install torch==2.11.0 transformers==5.23.0 accelerate gguf
Run:   python tools/dev/bench_transformers.py build/release/medusa MODEL.gguf QUESTIONS.jsonl [--limit N] [--batch 32]

Without --batch the questions are answered one by one, greedy: one round is one question. With it,
so many are answered at once, sampled: one round is one full batch, ours written as a dataset. The
sides take turns in going first. Prefill is counted on both, loading and the first, warming round
are not. Prints one JSON object with the medians and the median of the rounds' ratios with its
quartiles.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
import transformers
from gguf_copy import write_copy
from transformers import AutoModelForCausalLM, AutoTokenizer


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("medusa", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("questions", type=pathlib.Path)
    parser.add_argument("--limit", type=int, help="only the first N questions")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.7, help="used with --batch")
    parser.add_argument("--top-p", type=float, default=0.95, help="used with --batch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


def read_questions(settings: argparse.Namespace) -> list[str]:
    """The first turn of each."""
    questions = []
    for line in settings.questions.read_text(encoding="utf-8").splitlines()[:settings.limit]:
        question = json.loads(line)
        questions.append(question["turns"][0] if "turns" in question else question["text"])
    return questions


def quartiles(values: list[float]) -> list[float]:
    """Lower, median, upper."""
    return statistics.quantiles(values, n=4) if len(values) > 1 else values * 3


class Transformers:
    """The other side."""

    def __init__(self, settings: argparse.Namespace, model: pathlib.Path):
        """Of a GGUF model in BF16: from blocks transformers would compute slowly in float32."""
        torch.set_num_threads(settings.threads)
        torch.manual_seed(settings.seed)
        source = {"gguf_file": model.name}
        folder = model.resolve().parent
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", **source)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16,
                                                          **source).eval()
        self.settings = settings

    def answer(self, questions: list[str]) -> tuple[int, float]:
        """Emitted tokens, end tokens included, and seconds."""
        prompts = [self.tokenizer.apply_chat_template([{"role": "user", "content": question}],
                                                      tokenize=False, add_generation_prompt=True)
                   for question in questions]
        sampling = {"do_sample": False}
        if self.settings.batch > 1:
            sampling = {"do_sample": True, "temperature": self.settings.temperature, "top_k": 0,
                        "top_p": self.settings.top_p}
        started = time.perf_counter()
        inputs = self.tokenizer(prompts, return_tensors="pt", padding=True,
                                add_special_tokens=False)
        with torch.inference_mode():
            output = self.model.generate(**inputs, max_new_tokens=self.settings.max_new_tokens,
                                         pad_token_id=self.tokenizer.pad_token_id, **sampling)
        seconds = time.perf_counter() - started
        emitted = 0
        eos = self.tokenizer.eos_token_id
        for row in output[:, inputs.input_ids.shape[1]:].tolist():
            # Rows that ended early are padded: count up to their first end token.
            emitted += row.index(eos) + 1 if eos in row else len(row)
        return emitted, seconds


class Medusa:
    """Our program, started anew for every round; it times itself."""

    def __init__(self, settings: argparse.Namespace, folder: pathlib.Path):
        self.settings = settings
        self.folder = folder
        self.round = 0

    def answer(self, questions: list[str]) -> tuple[int, float]:
        self.round += 1
        run = self.folder / f"round-{self.round}"
        run.mkdir()
        prompts = run / "questions.jsonl"
        prompts.write_text("".join(json.dumps({"id": str(i), "text": question}) + "\n"
                                   for i, question in enumerate(questions)), encoding="utf-8")
        config = run / "run.yaml"
        settings = {"run": str(run), "seed": self.settings.seed,
                    "backbone": {"model": str(self.settings.model.resolve()), "dtype": "bfloat16",
                                 "threads": self.settings.threads}}
        if self.settings.batch > 1:
            settings["distill"] = {"prompts": [str(prompts)], "batch": self.settings.batch,
                                   "temperature": self.settings.temperature,
                                   "top_p": self.settings.top_p,
                                   "max_new_tokens": self.settings.max_new_tokens}
            arguments = ["distill"]
        else:
            settings["generate"] = {"drafter": "none",
                                    "max_new_tokens": self.settings.max_new_tokens}
            arguments = ["generate", "--questions", str(prompts)]
        config.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        done = subprocess.run([self.settings.medusa, *arguments, "--config", config, "--json"],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        result = json.loads(done.stdout)
        if self.settings.batch > 1:
            return result["generated"], result["seconds"]
        stats = [answer["stats"] for answer in result["answers"]]
        return (sum(s["emitted"] for s in stats),
                sum(s["prefill_s"] + s["decode_s"] for s in stats))


def main() -> None:
    settings = read_settings()
    questions = read_questions(settings)
    rounds = [questions[i:i + settings.batch]
              for i in range(0, len(questions) - settings.batch + 1, settings.batch)]
    theirs, ours, ratios = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "BF16.gguf"
        write_copy(settings.model, "BF16", copy)
        sides = {"theirs": Transformers(settings, copy),
                 "ours": Medusa(settings, pathlib.Path(folder))}
        for number, batch in enumerate([rounds[0], *rounds]):  # the first one warms up
            rates = {}
            for side in sorted(sides, reverse=number % 2 == 0):
                tokens, seconds = sides[side].answer(batch)
                rates[side] = tokens / seconds
            if number > 0:
                theirs.append(rates["theirs"])
                ours.append(rates["ours"])
                ratios.append(rates["ours"] / rates["theirs"])
    low, middle, high = quartiles(ratios)
    print(json.dumps({
        "engine": f"transformers {transformers.__version__}, torch {torch.__version__}",
        "model": settings.model.name,
        "dtype": "bfloat16",
        "threads": settings.threads,
        "batch": settings.batch,
        "sampled": settings.batch > 1,
        "rounds": len(ratios),
        "transformers_tokens_per_s": round(statistics.median(theirs), 1),
        "medusa_tokens_per_s": round(statistics.median(ours), 1),
        "ratio": round(middle, 2),
        "ratio_quartiles": [round(low, 2), round(high, 2)],
    }))


if __name__ == "__main__":
    main()
