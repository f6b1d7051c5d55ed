"""A model folder that medusa's joint stage wrote, as transformers reads it: the tokens of a
greedy answer beside medusa's own.

Development only. Needs: pip install torch==2.11.0 transformers==5.23.0 (gguf for a folder with a
SentencePiece tokenizer)
Run:   python tools/dev/check_tuned_model.py build/release/medusa CONFIG.yaml RUN/joint/model [--dtype float32]

Loads the folder with AutoTokenizer and AutoModelForCausalLM, applies the chat template, decodes
greedily, and compares with `medusa generate --drafter none --json`. Prints one JSON object; exits
with 1 if the answers part before the tenth token (later, near-ties may fall to either side in
bfloat16).
"""

import argparse
import json
import pathlib
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPT = "Name three things that are blue, and say why."
NEW_TOKENS = 32


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("medusa", type=pathlib.Path)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16"])
    return parser.parse_args()


def answer_of_medusa(settings: argparse.Namespace) -> dict:
    command = [settings.medusa, "generate", "--config", settings.config, "--drafter", "none", "--json"]
    command += ["--prompt", PROMPT, "--dtype", settings.dtype, "--set", f"backbone.model={settings.model}"]
    command += ["--set", f"generate.max_new_tokens={NEW_TOKENS}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["answers"][0]


def main() -> int:
    settings = read_settings()
    has_json = (settings.model / "tokenizer.json").exists()
    tokenizer = AutoTokenizer.from_pretrained(
        settings.model, **({} if has_json else {"gguf_file": "tokenizer.gguf"}))
    model = AutoModelForCausalLM.from_pretrained(
        settings.model, dtype=getattr(torch, settings.dtype))
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}], add_generation_prompt=True, return_tensors="pt",
        return_dict=True)
    with torch.no_grad():
        ids = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False)
    prompt = inputs["input_ids"].shape[1]
    theirs = ids[0, prompt:].tolist()
    ours = answer_of_medusa(settings)
    same = next((i for i, (a, b) in enumerate(zip(ours["tokens"], theirs)) if a != b),
                min(len(ours["tokens"]), len(theirs)))
    print(json.dumps({
        "prompt_tokens": prompt,
        "same_tokens": same,
        "of": NEW_TOKENS,
        "tied": bool(model.config.tie_word_embeddings),
        "transformers": tokenizer.decode(theirs),
        "medusa": ours.get("text"),
    }, indent=1))
    return 0 if same >= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
