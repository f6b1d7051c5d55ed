"""A model folder that medusa's joint stage wrote, as transformers reads it: its weights and logits
beside the adapters merged here by hand, its greedy answer beside medusa's own.

Development only. Needs: pip install torch==2.11.0 transformers==5.23.0 gguf==0.19.0 safetensors==0.8.0
Run:   python tools/dev/check_tuned_model.py build/release/medusa CONFIG.yaml RUN/joint ORIGINAL.gguf

Loads RUN/joint/model with AutoTokenizer and AutoModelForCausalLM and compares
  - every weight with that of ORIGINAL, read by transformers, plus alpha / rank * B A of the adapters
    in RUN/joint/train/checkpoint, rounded to bfloat16: so names, order and merging are checked;
  - the logits of both models for a text, in float32;
  - a greedy answer with that of `medusa generate --drafter none --dtype float32`.
Prints one JSON object; exits with 1 if a weight differs by more than a bfloat16 step, a logit by more
than 0.05, or the answers part before the tenth token. tests/golden/tuned_model.txt is what it printed.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPT = "Name three things that are blue, and say why."
NEW_TOKENS = 32


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("medusa", type=pathlib.Path)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("joint", type=pathlib.Path)
    parser.add_argument("original", type=pathlib.Path)
    return parser.parse_args()


def merged_by_hand(settings: argparse.Namespace):
    """The original model with the checkpoint's adapters, rounded as the folder's weights are."""
    model = AutoModelForCausalLM.from_pretrained(
        settings.original.parent, gguf_file=settings.original.name, dtype=torch.float32)
    manifest = json.loads((settings.joint / "model/tuned.json").read_text())
    alpha = float(re.search(r"^\s*alpha: (\S+)", manifest["settings"], re.MULTILINE).group(1))
    state = load_file(settings.joint / "train/checkpoint/state.safetensors")
    adapters = sorted({name[:-2] for name in state
                       if re.fullmatch(r"(layers\.\d+\.\w+|lm_head)\.a", name)})
    if "lm_head" in adapters:  # tied to the embedding until it is trained
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    with torch.no_grad():
        for name in adapters:
            a, b = state[f"{name}.a"], state[f"{name}.b"]
            module = model.lm_head
            if name != "lm_head":
                _, index, part = name.split(".")
                layer = model.model.layers[int(index)]
                module = getattr(layer.self_attn if part in ("q_proj", "k_proj", "v_proj", "o_proj") else layer.mlp, part)
            module.weight += alpha / a.shape[0] * (b @ a)
        for parameter in model.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).float())
    return model, adapters


def largest_weight_difference(exported, expected) -> float:
    """In steps of bfloat16 at that weight."""
    theirs = dict(exported.named_parameters())
    worst = 0.0
    for name, parameter in expected.named_parameters():
        step = torch.clamp(parameter.abs(), min=1e-6) / 128
        worst = max(worst, ((theirs[name] - parameter).abs() / step).max().item())
    assert theirs.keys() == dict(expected.named_parameters()).keys()
    return worst


def answer_of_medusa(settings: argparse.Namespace) -> dict:
    command = [settings.medusa, "generate", "--config", settings.config, "--drafter", "none", "--json"]
    command += ["--prompt", PROMPT, "--dtype", "float32", "--set", f"backbone.model={settings.joint / 'model'}"]
    command += ["--set", f"generate.max_new_tokens={NEW_TOKENS}", "--set", "backbone.threads=1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["answers"][0]


def main() -> int:
    settings = read_settings()
    folder = settings.joint / "model"
    has_json = (folder / "tokenizer.json").exists()
    tokenizer = AutoTokenizer.from_pretrained(folder, **({} if has_json else {"gguf_file": "tokenizer.gguf"}))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    expected, adapters = merged_by_hand(settings)
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}], add_generation_prompt=True, return_tensors="pt",
        return_dict=True)
    with torch.no_grad():
        ids = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False)
        logits, by_hand = model(ids).logits, expected(ids).logits
    prompt = inputs["input_ids"].shape[1]
    theirs, ours = ids[0, prompt:].tolist(), answer_of_medusa(settings)
    same = next((i for i, (a, b) in enumerate(zip(ours["tokens"], theirs)) if a != b),
                min(len(ours["tokens"]), len(theirs)))
    weights = largest_weight_difference(model, expected)
    difference = (logits - by_hand).abs().max().item()
    print(json.dumps({
        "adapters": len(adapters),
        "lm_head_trained": "lm_head" in adapters,
        "tied": bool(model.config.tie_word_embeddings),
        "largest_weight_difference_bfloat16_steps": round(weights, 3),
        "largest_logit_difference": round(difference, 6),
        "largest_logit": round(logits.abs().max().item(), 3),
        "prompt_tokens": prompt,
        "same_tokens": same,
        "of": min(NEW_TOKENS, len(theirs)),
        "transformers": tokenizer.decode(theirs),
        "medusa": ours.get("text"),
    }, indent=1))
    return 0 if weights <= 1.01 and difference <= 0.05 and same >= min(10, len(theirs)) else 1


if __name__ == "__main__":
    sys.exit(main())
