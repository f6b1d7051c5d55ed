"""Writes tests/golden/eagle3.json: what a small EAGLE-3 draft makes of a text, and the tree that EAGLE-2's rules grow
behind it, computed in PyTorch from the definition alone: no cache, every path from its beginning. Weights are filled
by a rule that tests/backbone/seeded_fill.h repeats. For tests/heads/eagle3/eagle3_model_test.cpp and
tests/infer/drafters/eagle3_drafter_test.cpp.

The definition follows facts read in SafeAILab/EAGLE (eagle/model/cnets.py): position i pairs the features of token i
with the embedding of token i + 1; the layer's input is [norm(embedding), norm(state)] and its residual the state; the
next position's state is the layer's output before the final norm; d2t holds offsets.

Development only. Needs: torch, of any version
Run:   python tools/dev/make_eagle3_golden.py
"""

import json
import math
import pathlib

import torch

from seeded_fill import fill

OUTPUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "eagle3.json"

HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, MLP = 64, 4, 2, 32, 96
VOCAB, DRAFT_VOCAB, FEATURES = 130, 40, 3
EPSILON, ROPE_BASE = 1e-5, 10000.0
NUM_TOKENS, NODES, DEPTH, BEAM = 20, 14, 4, 4

QUERIES, KEYS = HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE
LAYER = "midlayer."
W = {name: fill(name, torch.Size(shape)) for name, shape in {
    "fc.weight": (HIDDEN, FEATURES * HIDDEN),
    LAYER + "hidden_norm.weight": (HIDDEN,),
    LAYER + "input_layernorm.weight": (HIDDEN,),
    LAYER + "self_attn.q_proj.weight": (QUERIES, 2 * HIDDEN),
    LAYER + "self_attn.k_proj.weight": (KEYS, 2 * HIDDEN),
    LAYER + "self_attn.v_proj.weight": (KEYS, 2 * HIDDEN),
    LAYER + "self_attn.o_proj.weight": (HIDDEN, QUERIES),
    LAYER + "post_attention_layernorm.weight": (HIDDEN,),
    LAYER + "mlp.gate_proj.weight": (MLP, HIDDEN),
    LAYER + "mlp.up_proj.weight": (MLP, HIDDEN),
    LAYER + "mlp.down_proj.weight": (HIDDEN, MLP),
    "norm.weight": (HIDDEN,),
    "lm_head.weight": (DRAFT_VOCAB, HIDDEN),
    "embed_tokens.weight": (VOCAB, HIDDEN),
}.items()}
W["lm_head.weight"] *= 6  # probabilities that differ much, as a trained draft's do
D2T = torch.tensor([2 * row + 1 for row in range(DRAFT_VOCAB)])
TEXT = [(7 * i * i + 3) % VOCAB for i in range(NUM_TOKENS + 1)]
TEXT_FEATURES = fill("embed.features", torch.Size((NUM_TOKENS, FEATURES * HIDDEN)))


def rms_norm(x, weight):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPSILON) * weight


def rotate(x, positions):
    """x [heads, n, D]"""
    half = HEAD_SIZE // 2
    frequencies = ROPE_BASE ** (-torch.arange(half, dtype=torch.float64) * 2 / HEAD_SIZE)
    angles = positions.double()[:, None] * frequencies
    cos, sin = torch.cos(angles).float(), torch.sin(angles).float()
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def layer(tokens, states):
    """tokens [n] behind the positions, states [n, H] -> [n, H]"""
    n = len(tokens)
    embedded = W["embed_tokens.weight"][torch.tensor(tokens)]
    x = torch.cat([rms_norm(embedded, W[LAYER + "input_layernorm.weight"]),
                   rms_norm(states, W[LAYER + "hidden_norm.weight"])], -1)

    def heads(part, count):
        rows = x @ W[f"{LAYER}self_attn.{part}_proj.weight"].T
        return rows.view(n, count, HEAD_SIZE).transpose(0, 1)

    positions = torch.arange(n)
    query = rotate(heads("q", HEADS), positions)
    key = rotate(heads("k", KV_HEADS), positions).repeat_interleave(HEADS // KV_HEADS, 0)
    value = heads("v", KV_HEADS).repeat_interleave(HEADS // KV_HEADS, 0)
    scores = query @ key.transpose(1, 2) / math.sqrt(HEAD_SIZE)
    scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf)
    attended = (scores.softmax(-1) @ value).transpose(0, 1).reshape(n, QUERIES)
    y = states + attended @ W[LAYER + "self_attn.o_proj.weight"].T
    z = rms_norm(y, W[LAYER + "post_attention_layernorm.weight"])
    gate, up = z @ W[LAYER + "mlp.gate_proj.weight"].T, z @ W[LAYER + "mlp.up_proj.weight"].T
    return y + (torch.nn.functional.silu(gate) * up) @ W[LAYER + "mlp.down_proj.weight"].T


def logits_of(states):
    return rms_norm(states, W["norm.weight"]) @ W["lm_head.weight"].T


def state_after(path):
    """The last state of a path behind the text: each of its positions takes the state of the one before."""
    tokens, states = TEXT[1:], TEXT_FEATURES @ W["fc.weight"].T
    out = layer(tokens, states)
    for token in path:
        tokens, states = tokens + [token], torch.cat([states, out[-1:]])
        out = layer(tokens, states)
    return out[-1]


def grow():
    """All that is proposed, by path; the beam of a level runs."""
    proposed, beam = {}, [((), 0.0)]
    for _ in range(DEPTH):
        level = {}
        for path, score in beam:
            log_probs = logits_of(state_after(path)).log_softmax(-1)
            best = log_probs.topk(BEAM)
            for value, row in zip(best.values.tolist(), best.indices.tolist()):
                level[path + (row + int(D2T[row]),)] = score + value
        proposed.update(level)
        beam = sorted(level.items(), key=lambda item: -item[1])[:BEAM]
    return sorted(proposed.items(), key=lambda item: -item[1])[:NODES - 1]


def main():
    all_logits = logits_of(layer(TEXT[1:], TEXT_FEATURES @ W["fc.weight"].T))
    chain = [91, 4]
    golden = {
        "text": TEXT,
        "logits": {str(row): [round(x, 5) for x in all_logits[row].tolist()]
                   for row in (0, NUM_TOKENS - 1)},
        "chain": chain,
        "chain_logits": [round(x, 5) for x in logits_of(state_after(chain)).tolist()],
        "nodes": NODES, "depth": DEPTH, "beam": BEAM,
        "tree": [{"path": list(path), "log_prob": round(score, 5)} for path, score in grow()],
    }
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items())
    OUTPUT.write_text("{" + lines + "}\n")
    print(f"{OUTPUT}: {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
