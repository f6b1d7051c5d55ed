"""Writes tests/golden/architectures.json: a tiny model of every architecture and every rotary
stretching that medusa runs, its weights filled by a rule that tests/backbone/seeded_fill.h repeats,
and some of the logits that transformers computes with them, for architecture_test.cpp.

Development only. Needs: pip install torch==2.11.0 transformers==5.23.0
Run:   python tools/dev/make_architecture_golden.py
"""

import importlib.metadata
import json
import pathlib

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from seeded_fill import fill, mix

OUTPUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "architectures.json"
NUM_TOKENS = 48

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 130,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "hidden_act": "silu", "eos_token_id": 1, "tie_word_embeddings": True}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **SIZES}
MISTRAL = {**SIZES, "model_type": "mistral", "architectures": ["MistralForCausalLM"],
           "sliding_window": None, "head_dim": 16}
PHI3 = {**SIZES, "model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "pad_token_id": None,
        "sliding_window": None, "tie_word_embeddings": False}
QWEN2 = {**SIZES, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
         "use_sliding_window": False, "rope_theta": 1000000.0}
SMOLLM3 = {**SIZES, "model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"],
           "pad_token_id": None, "bos_token_id": None, "rope_theta": 2000000.0}
MODELS = {
    "llama": LLAMA,
    "llama, own output, wide heads": {**LLAMA, "tie_word_embeddings": False, "head_dim": 32},
    "llama, linear": {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "llama 3": {**LLAMA, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16}},
    "llama, yarn": {**LLAMA, "head_dim": 32, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
    "llama, yarn with its own numbers": {**LLAMA, "head_dim": 32, "rope_scaling": {
        "rope_type": "yarn", "factor": 6.0, "original_max_position_embeddings": 32,
        "beta_fast": 8.0, "beta_slow": 2.0, "mscale": 0.7, "mscale_all_dim": 1.4,
        "truncate": False}},
    "llama, dynamic NTK": {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}},
    "mistral": MISTRAL,
    "mistral, window": {**MISTRAL, "sliding_window": 12},
    "phi3": PHI3,
    "phi3, longrope, window": {
        **PHI3, "sliding_window": 20, "max_position_embeddings": 256,
        "original_max_position_embeddings": 64, "rope_scaling": {
            "type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0],
            "long_factor": [2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0]}},
    "phi3, turns in part": {**PHI3, "partial_rotary_factor": 0.75},
    "phi3, turns in part, longrope": {
        **PHI3, "partial_rotary_factor": 0.75, "max_position_embeddings": 256,
        "original_max_position_embeddings": 64, "rope_scaling": {
            "type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5],
            "long_factor": [2.0, 3.0, 4.0, 6.0, 8.0, 12.0]}},
    "qwen2": QWEN2,
    "qwen2, window": {**QWEN2, "use_sliding_window": True, "sliding_window": 12,
                      "max_window_layers": 1},
    "qwen3": {**SIZES, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
              "head_dim": 32, "use_sliding_window": False, "rope_theta": 1000000.0},
    "smollm3": {**SMOLLM3, "num_hidden_layers": 4},
    "smollm3, layers listed": {**SMOLLM3, "no_rope_layers": [0, 1]},
}
# GGUF's metadata have no words for these.
ONLY_FOLDERS = {"llama, yarn with its own numbers", "smollm3, layers listed"}


def main() -> None:
    golden = {"made_by": "tools/dev/make_architecture_golden.py, "
                         f"transformers {importlib.metadata.version('transformers')}"}
    tokens = [mix(i) % 130 for i in range(NUM_TOKENS)]
    golden["tokens"] = tokens
    for name, settings in MODELS.items():
        config = AutoConfig.for_model(**settings)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        with torch.no_grad():
            for parameter, tensor in model.named_parameters():
                tensor.copy_(fill(parameter, tensor.shape))
            logits = model(torch.tensor([tokens])).logits[0]
        golden[name] = {
            "config": settings,
            "in_gguf": name not in ONLY_FOLDERS,
            "logsumexp": [round(x, 5) for x in logits.logsumexp(-1).tolist()],
            "first_logits": [[round(x, 5) for x in row[:4]] for row in logits.tolist()],
        }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{OUTPUT}: {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
