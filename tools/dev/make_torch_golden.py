#!/usr/bin/env python3
"""Makes tests/golden/torch_save.pt and torch_save.json: what torch.save writes, and what is in it.

Run with torch 2.11 (any version since 2.1 gives the same tensors):
    python tools/dev/make_torch_golden.py tests/golden
"""
import json
import pathlib
import sys

import torch


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 4, bias=False))
    state = model.state_dict()  # an OrderedDict with _metadata
    state["half"] = torch.arange(4, dtype=torch.float16) / 4
    state["brain"] = torch.arange(3, dtype=torch.bfloat16).reshape(3, 1)
    state["ids"] = torch.tensor([7, -1, 2**40])
    state["tied"] = state["half"]  # the same storage
    state["part"] = torch.arange(12, dtype=torch.float32).reshape(4, 3)[1:3]  # inside a storage
    state["parameter"] = torch.nn.Parameter(torch.tensor([1.5]))
    state["single"] = torch.tensor(2.5, dtype=torch.float64)
    torch.save(state, folder / "torch_save.pt")
    values = {
        name: {"shape": list(tensor.shape), "values": tensor.detach().double().flatten().tolist()}
        for name, tensor in state.items()
    }
    (folder / "torch_save.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
