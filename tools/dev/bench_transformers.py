"""Tokens per second of transformers' generate on a GGUF model in bfloat16: the figure to beat.

Development only. Needs: pip install torch==2.11.0 transformers==5.23.0 accelerate gguf
Run:   python tools/dev/bench_transformers.py MODEL.gguf QUESTIONS.jsonl [--limit N] [--batch 32]

Without --batch one question after the other, greedy. With it, that many answers at once, sampled,
the questions repeated to fill the batch. Prints one JSON object. Loading and one warm-up answer are
not counted; prefill is.
"""

import argparse
import json
import pathlib
import time

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("questions", type=pathlib.Path)
    parser.add_argument("--limit", type=int, help="only the first N questions")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.8, help="used with --batch")
    parser.add_argument("--top-p", type=float, default=0.95, help="used with --batch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


def read_prompts(settings: argparse.Namespace, tokenizer) -> list[str]:
    lines = settings.questions.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["turns"][0] for line in lines if line.strip()]
    return [
        tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False,
                                      add_generation_prompt=True)
        for question in questions[:settings.limit]
    ]


def generate(model, tokenizer, prompts: list[str], settings: argparse.Namespace) -> int:
    """Answers the prompts as one batch; returns the number of emitted tokens, end tokens included."""
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
    sampling = {"do_sample": False}
    if settings.batch > 1:
        sampling = {"do_sample": True, "temperature": settings.temperature, "top_k": 0,
                    "top_p": settings.top_p}
    output = model.generate(**inputs, max_new_tokens=settings.max_new_tokens,
                            pad_token_id=tokenizer.pad_token_id, **sampling)
    emitted = 0
    for row in output[:, inputs.input_ids.shape[1]:].tolist():
        # Rows that ended early are padded: count up to their first end token.
        eos = tokenizer.eos_token_id
        emitted += row.index(eos) + 1 if eos in row else len(row)
    return emitted


def main() -> None:
    settings = read_settings()
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    source = {"gguf_file": settings.model.name}
    folder = settings.model.resolve().parent
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", **source)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, **source).eval()
    prompts = read_prompts(settings, tokenizer)
    if settings.batch > 1:
        count = -(-len(prompts) // settings.batch) * settings.batch
        prompts = [prompts[i % len(prompts)] for i in range(count)]
    emitted = 0
    with torch.inference_mode():
        generate(model, tokenizer, prompts[:1], settings)  # warm-up
        started = time.perf_counter()
        for begin in range(0, len(prompts), settings.batch):
            emitted += generate(model, tokenizer, prompts[begin:begin + settings.batch], settings)
        seconds = time.perf_counter() - started
    print(json.dumps({
        "engine": f"transformers {transformers.__version__}, torch {torch.__version__}",
        "model": settings.model.name,
        "dtype": "bfloat16",
        "threads": settings.threads,
        "batch": settings.batch,
        "sampled": settings.batch > 1,
        "answers": len(prompts),
        "tokens": emitted,
        "seconds": round(seconds, 3),
        "tokens_per_s": round(emitted / seconds, 2),
    }))


if __name__ == "__main__":
    main()
