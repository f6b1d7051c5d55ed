"""medusa train beside a plain PyTorch loop: the same heads from the same recorded states, positions
per second and peak memory, by turns.

Development only. Needs: pip install torch==2.11.0 gguf h5py
Run:   tools/demo.sh, then
       python tools/dev/bench_head_training.py build/release/medusa configs/demo.yaml runs/demo/dataset MODEL.gguf

The loop is what one writes first: all states in memory, all heads' logits of a batch at once,
autograd, fused AdamW, bfloat16 by autocast with float32 masters. Both train root heads against hard
labels. Ours reads the dataset once in each round, the loop takes --steps batches after ten uncounted
ones. Each side is a process of its own in each round; memory is the most it had resident. Prints a
table on stderr and one JSON object.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

NUM_HEADS = 4
LAMBDA_DECAY = 0.8


def read_settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("medusa", type=pathlib.Path)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("dataset", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=256, help="positions of one step")
    parser.add_argument("--output-size", type=int, default=8192, help="tokens that heads guess; 0: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200, help="of the loop in each round")
    parser.add_argument("--share", type=float, default=1, help="of the dataset, that ours reads")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--loop", action="store_true", help="be one round of the loop")
    return parser.parse_args()


def read_positions(dataset: pathlib.Path):
    """States [N, H] bfloat16, roots [N], labels [K, N] (token ids, -100 behind the end)."""
    import h5py
    import numpy as np
    import torch

    states, roots, labels = [], [], [[] for _ in range(NUM_HEADS)]
    for path in sorted(dataset.glob("shard-*.h5")):
        with h5py.File(path) as f:
            tokens, offsets, starts = f["tokens"][:], f["offsets"][:], f["answer_start"][:]
            rows, hidden = f["hidden_offsets"][:], f["hidden"][:]
        for i, start in enumerate(starts):
            answer = tokens[offsets[i] + start:offsets[i + 1]]
            count = len(answer) - 1
            states.append(hidden[rows[i]:rows[i] + count])
            roots.append(answer[:count])
            padded = np.concatenate([answer, np.full(NUM_HEADS, -100)])
            for k in range(NUM_HEADS):
                labels[k].append(padded[1 + k:1 + k + count])
    bits = torch.from_numpy(np.concatenate(states).view(np.int16)).view(torch.bfloat16)
    labels = torch.from_numpy(np.stack([np.concatenate(each) for each in labels])).long()
    return bits, torch.from_numpy(np.concatenate(roots)).long(), labels


def read_embedding(model: pathlib.Path):
    import gguf
    import torch

    for tensor in gguf.GGUFReader(model).tensors:
        if tensor.name == "token_embd.weight":
            return torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type)).bfloat16()
    raise SystemExit(f"{model}: no token_embd.weight")


def run_loop(settings: argparse.Namespace) -> None:
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(settings.threads)
    torch.manual_seed(1)
    states, roots, labels = read_positions(settings.dataset)
    embedding = read_embedding(settings.model)  # tied: the LM head, too
    output = embedding
    if settings.output_size > 0:
        counts = torch.bincount(labels[0][labels[0] >= 0], minlength=len(embedding))
        kept = counts.argsort(descending=True)[:settings.output_size]
        row_of = torch.full((len(embedding),), -100)
        row_of[kept] = torch.arange(len(kept))
        output = embedding[kept]
        labels = torch.where(labels >= 0, row_of[labels.clamp(min=0)], -100)
    width = states.shape[1]
    first = torch.nn.ModuleList(torch.nn.Linear(2 * width, width) for _ in range(NUM_HEADS))
    second = torch.nn.ModuleList(torch.nn.Linear(width, width, bias=False) for _ in range(NUM_HEADS))
    for layer in second:
        torch.nn.init.zeros_(layer.weight)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0, fused=True)
    order = torch.randperm(len(states))
    warm = 10
    began = 0.0
    for step in range(warm + settings.steps):
        if step == warm:
            began = time.perf_counter()
        begin = step * settings.batch % (len(order) - settings.batch)
        rows = order[begin:begin + settings.batch]
        x = states[rows].float()
        read = torch.cat([x, embedding[roots[rows]].float()], 1)
        with torch.autocast("cpu", torch.bfloat16):
            guessed = [x + second[k](F.silu(first[k](read))) for k in range(NUM_HEADS)]
            logits = F.linear(torch.stack(guessed), output)  # [K, B, V]
        loss = sum(LAMBDA_DECAY**k * F.cross_entropy(logits[k].float(), labels[k][rows])
                   for k in range(NUM_HEADS))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    seconds = time.perf_counter() - began
    print(json.dumps({"positions_per_s": settings.steps * settings.batch / seconds,
                      "memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
                      "loss": loss.item()}))


def theirs(settings: argparse.Namespace) -> dict:
    done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--loop"], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def ours(settings: argparse.Namespace) -> dict:
    with tempfile.TemporaryDirectory() as run:
        output = "shared" if settings.output_size == 0 else "truncated_shared"
        changes = [f"run={run}", f"train.data=[{settings.dataset.resolve()}]",
                   f"backbone.model={settings.model.resolve()}", "train.epochs=1",
                   f"train.data_weights=[{settings.share}]", "train.labels=hard",
                   f"train.batch_positions={settings.batch}",
                   f"train.heads.output={output}", f"backbone.threads={settings.threads}"]
        if settings.output_size > 0:
            changes.append(f"train.heads.output_size={settings.output_size}")
        sets = [word for change in changes for word in ("--set", change)]
        process = subprocess.Popen(
            [settings.medusa, "train", "--config", settings.config, "--json", *sets],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        out = process.stdout.read()
        _, process.returncode, usage = os.wait4(process.pid, 0)  # of this child alone
        if process.returncode != 0:
            raise SystemExit(f"medusa train ended with status {process.returncode}")
        result = json.loads(out)
        return {"positions_per_s": result["positions"] / result["seconds"],
                "memory_gb": usage.ru_maxrss / 1e6, "loss": result["loss"]}


def main() -> None:
    settings = read_settings()
    if settings.loop:
        run_loop(settings)
        return
    sides = {"medusa train": ours, "PyTorch loop": theirs}
    measured = {name: [] for name in sides}
    for number in range(settings.rounds):
        for name in sorted(sides, reverse=number % 2 == 1):
            measured[name].append(sides[name](settings))
            print(f"round {number + 1} {name}: {measured[name][-1]}", file=sys.stderr)

    def median(name: str, key: str) -> float:
        return statistics.median(each[key] for each in measured[name])

    ratios = [a["positions_per_s"] / b["positions_per_s"]
              for a, b in zip(measured["medusa train"], measured["PyTorch loop"])]
    for name in sides:
        print(f"{name:<14}{median(name, 'positions_per_s'):>8.0f} positions/s"
              f"{median(name, 'memory_gb'):>8.2f} GB", file=sys.stderr)
    memory = median("medusa train", "memory_gb") / median("PyTorch loop", "memory_gb")
    print(json.dumps({"batch": settings.batch, "output_size": settings.output_size,
                      "threads": settings.threads, "ratio": statistics.median(ratios),
                      "ratios": ratios, "memory_ratio": memory, "measured": measured}))


if __name__ == "__main__":
    main()
