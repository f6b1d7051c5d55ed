#!/usr/bin/env python3
"""Loads exported heads as each engine does, runs them in PyTorch and compares with our own
folder, run in PyTorch as heads/medusa_heads.h describes.

    python tools/dev/check_exported_heads.py HEADS BACKBONE EXPORTS

HEADS      our folder (heads.safetensors)
BACKBONE   the model: a .gguf file, a Hugging Face folder or a .safetensors file
EXPORTS    a folder with fasterdecoding/, tgi-v2/, vllm/, tensorrt-llm/, medusa-2/ of `medusa export`

Needs torch, safetensors, numpy and, for a .gguf, gguf. Each
loading rule below is written from the project's documented behaviour: which file is opened,
which names are looked for, what becomes of names it does not know, what stands in for what is
missing. A tensor that an engine would not find keeps a random value here, as it would there, and the
comparison then fails.
"""
import json
import pathlib
import sys

import safetensors.torch
import torch

TOLERANCE = 1e-4
ROWS = 64


def read_lm_head(path: pathlib.Path) -> torch.Tensor:
    if path.suffix == ".gguf":
        import gguf
        tensors = {each.name: each for each in gguf.GGUFReader(path).tensors}
        stored = tensors.get("output.weight", tensors.get("token_embd.weight"))
        return torch.from_numpy(gguf.quants.dequantize(stored.data, stored.tensor_type)).float()
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    found = {}
    for file in files:
        found.update(safetensors.torch.load_file(file))
    name = "lm_head.weight" if "lm_head.weight" in found else "model.embed_tokens.weight"
    return found[name].float()


def run_blocks(weights, biases, hidden):
    for weight, bias in zip(weights, biases):
        hidden = hidden + torch.nn.functional.silu(hidden @ weight.T + bias)
    return hidden


def our_logits(folder: pathlib.Path, lm_head, hidden):
    tensors = {k: v.float() if v.is_floating_point() else v
               for k, v in safetensors.torch.load_file(folder / "heads.safetensors").items()}
    heads = 1 + max(int(name.split(".")[0]) for name in tensors if name[0].isdigit())
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if ".layers." in name)
    out = []
    for k in range(heads):
        state = run_blocks([tensors[f"{k}.layers.{l}.weight"] for l in range(layers)],
                           [tensors[f"{k}.layers.{l}.bias"] for l in range(layers)], hidden)
        output = tensors.get(f"{k}.output", lm_head)
        if "kept_tokens" in tensors and f"{k}.output" not in tensors:
            output = lm_head[tensors["kept_tokens"].long()]
        out.append(state @ output.T)
    return out, tensors.get("kept_tokens")


def random_like(*shape):
    return torch.randn(*shape)


def load_fasterdecoding(folder, lm_head):
    """Opens medusa_lm_head.pt alone, builds five heads whatever the config says, and loads with
    strict=False: what is missing stays as it was made."""
    config = json.loads((folder / "config.json").read_text())
    assert "model_type" not in config, "AutoConfig must fail, or the folder is taken for a model"
    state = torch.load(folder / "medusa_lm_head.pt", weights_only=True)
    size = next(iter(state.values())).shape[-1]
    vocab = lm_head.shape[0]
    heads = []
    for k in range(5):
        get = lambda name, *shape: state.get(name, random_like(*shape)).float()
        heads.append(([get(f"{k}.0.linear.weight", size, size)], [get(f"{k}.0.linear.bias", size)],
                      get(f"{k}.1.weight", vocab, size)))
    return heads[: config["medusa_num_heads"]], None


def load_tgi_v2(folder, lm_head):
    """medusa_lm_head.safetensors alone; no per-head output is found, so the V2 head: one layer, the
    model's LM head. Heads are counted by the config; a key `architectures` turns them off."""
    config = json.loads((folder / "config.json").read_text())
    assert "architectures" not in config and config["medusa_num_layers"] == 1
    state = safetensors.torch.load_file(folder / "medusa_lm_head.safetensors")
    assert "0.1.weight" not in state
    return [([state[f"{k}.0.linear.weight"].float()], [state[f"{k}.0.linear.bias"].float()], lm_head)
            for k in range(config["medusa_num_heads"])], None


def load_vllm(folder, lm_head):
    """Every .safetensors of the folder; config keys with num and heads or layers are renamed; no
    bias unless medusa_fc_bias; unknown names are passed over; outputs longer than the token_map are
    cut by it."""
    config = json.loads((folder / "config.json").read_text())
    for key in list(config):
        if "num" in key and "heads" in key:
            config["num_heads"] = config.pop(key)
        elif "num" in key and "layers" in key:
            config["num_hidden_layers"] = config.pop(key)
    assert config.get("architectures", ["MedusaModel"]) == ["MedusaModel"]
    assert config["vocab_size"] == lm_head.shape[0], "vLLM would drop the truncation"
    size, kept = config["hidden_size"], config.get("truncated_vocab_size") or config["vocab_size"]
    has_bias, shared = config.get("medusa_fc_bias", False), config.get("original_lm_head", False)
    params = {}
    for k in range(config["num_heads"]):
        for l in range(config["num_hidden_layers"]):
            params[f"blocks.{k}.layers.{l}.weight"] = random_like(size, size)
            if has_bias:
                params[f"blocks.{k}.layers.{l}.bias"] = random_like(size)
        if not shared:
            params[f"lm_heads.{k}.weight"] = random_like(kept, size)
    if shared:
        params["lm_head.weight"] = random_like(kept, size)
    stored = {}
    for file in folder.glob("*.safetensors"):
        stored.update(safetensors.torch.load_file(file))
    token_map = None
    for name, tensor in stored.items():
        name = name.replace("medusa_heads.", "")
        if name == "token_map" and kept < config["vocab_size"]:
            token_map = tensor
    for name, tensor in stored.items():
        name = name.replace("medusa_heads.", "")
        if name not in params:
            continue
        if "lm_head" in name and token_map is not None and tensor.shape[0] > token_map.shape[0]:
            tensor = tensor[token_map]
        assert params[name].shape == tensor.shape, name
        params[name] = tensor.float()
    assert kept == config["vocab_size"] or token_map is not None
    zero = torch.zeros(size)
    heads = []
    for k in range(config["num_heads"]):
        layers = range(config["num_hidden_layers"])
        heads.append(([params[f"blocks.{k}.layers.{l}.weight"] for l in layers],
                      [params.get(f"blocks.{k}.layers.{l}.bias", zero) for l in layers],
                      params["lm_head.weight" if shared else f"lm_heads.{k}.weight"]))
    return heads, token_map


def load_tensorrt_llm(folder, lm_head):
    """convert_checkpoint.py: medusa_lm_head.pt if there is one, else .safetensors; the paper's
    names, biases required; numbers of heads and layers come from the command line."""
    config = json.loads((folder / "config.json").read_text())
    pt = folder / "medusa_lm_head.pt"
    state = (torch.load(pt, weights_only=True) if pt.exists()
             else safetensors.torch.load_file(folder / "medusa_lm_head.safetensors"))
    heads, layers = config["num_medusa_heads"], config["medusa_num_layers"]
    choices = folder / "medusa_choices.json"
    if choices.exists():
        paths = json.loads(choices.read_text())
        assert paths and all(path and len(path) <= heads for path in paths)
    return [([state[f"{k}.{l}.linear.weight"].float() for l in range(layers)],
             [state[f"{k}.{l}.linear.bias"].float() for l in range(layers)],
             state[f"{k}.{layers}.weight"].float()) for k in range(heads)], None


def load_medusa_2(folder, lm_head):
    """A whole model: config.json has the model's own type and, in it, the numbers of heads and
    layers; transformers opens model.safetensors if there is one and else every file of the index; the
    heads are a member called medusa_head, its names below that prefix."""
    config = json.loads((folder / "config.json").read_text())
    assert "model_type" in config and not (folder / "model.safetensors").exists()
    places = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    state = {}
    for file in sorted(set(places.values())):
        stored = safetensors.torch.load_file(folder / file)
        assert all(places[name] == file for name in stored), file
        state.update(stored)
    assert state.keys() == places.keys()
    heads, layers = config["medusa_num_heads"], config["medusa_num_layers"]
    assert not any(name.startswith(f"medusa_head.{heads}.") for name in state)
    prefix = "medusa_head."
    return [([state[f"{prefix}{k}.{l}.linear.weight"].float() for l in range(layers)],
             [state[f"{prefix}{k}.{l}.linear.bias"].float() for l in range(layers)],
             state[f"{prefix}{k}.{layers}.weight"].float()) for k in range(heads)], None


LOADERS = {"fasterdecoding": load_fasterdecoding, "tgi-v2": load_tgi_v2, "vllm": load_vllm,
           "tensorrt-llm": load_tensorrt_llm, "medusa-2": load_medusa_2}


def main() -> int:
    heads_folder, backbone, exports = (pathlib.Path(each) for each in sys.argv[1:4])
    torch.manual_seed(1)
    lm_head = read_lm_head(backbone)
    hidden = torch.randn(ROWS, lm_head.shape[1])
    ours, kept = our_logits(heads_folder, lm_head, hidden)
    failed = False
    for name, load in LOADERS.items():
        if not (exports / name).exists():
            print(f"{name:16} not exported")
            continue
        heads, token_map = load(exports / name, lm_head)
        if name == "medusa-2" and backbone.suffix == ".gguf":  # written in bfloat16
            ours, kept = our_logits(heads_folder, lm_head.bfloat16().float(), hidden)
        worst = 0.0
        for (weights, biases, output), expected in zip(heads, ours, strict=True):
            logits = run_blocks(weights, biases, hidden) @ output.T
            if kept is not None and token_map is None:  # widened: compare the tokens that we keep
                logits = logits[:, kept.long()]
            worst = max(worst, (logits - expected).abs().max().item())
        if token_map is not None:
            assert torch.equal(token_map, kept.long())
        ok = worst <= TOLERANCE
        failed |= not ok
        print(f"{name:16} {len(heads)} heads, {ROWS} states, largest difference of a logit "
              f"{worst:.1e}  {'ok' if ok else 'FAILED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
