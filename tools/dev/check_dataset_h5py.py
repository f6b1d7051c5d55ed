#!/usr/bin/env python3
"""Reads a dataset as data/dataset/FORMAT.md describes it, with h5py instead of our own reader.

    pip install h5py
    tools/dev/check_dataset_h5py.py runs/demo/dataset

Checks every shard (names, types, offsets, checksum, the chain of shards), runs the snippet printed
in data/dataset/FORMAT.md and lists the first shard. Exit status 1 at the first thing that does not fit.
"""

import hashlib
import pathlib
import sys

import h5py
import numpy as np

DATASETS = {"tokens": "<i4", "offsets": "<i8", "answer_start": "<i8"}
HIDDEN = {
    "bfloat16": {"hidden": "<u2", "hidden_offsets": "<i8"},
    "int8": {"hidden": "|i1", "hidden_scale": "<f4", "hidden_offsets": "<i8"},
}
TEXTS = ["checksum", "format", "backbone", "tokenizer", "prompts", "sampling"]
NUMBERS = ["version", "vocab_size", "hidden_size", "first", "count", "total", "last"]


def states_of(attributes):
    """How states are kept, and the most bytes of them; 0: no limit."""
    if attributes["version"] == 1:
        return "bfloat16", 0
    states = attributes["states"]
    return states.decode() if isinstance(states, bytes) else str(states), int(attributes["states_budget"])


def check_shard(path, first, used):
    """used: bytes of states so far, and whether an answer was without."""
    raw = path.read_bytes()
    with h5py.File(path) as f:
        a = dict(f.attrs)
        for name in TEXTS:
            assert isinstance(a[name], (str, bytes, np.bytes_)), name
        for name in NUMBERS:
            assert a[name].dtype == "<i8", name
        assert a["seed"].dtype == "<u8"
        text = {name: f.attrs[name].decode() if isinstance(a[name], bytes) else str(a[name]) for name in TEXTS}
        word, digits = text["checksum"].split(":")
        assert word == "medusa-sha256"
        assert hashlib.sha256(raw.replace(digits.encode(), b"0" * 64, 1)).hexdigest() == digits
        assert text["format"] == "medusa-dataset" and a["version"] in (1, 2)
        states, budget = states_of(a)
        assert a["first"] == first and first + a["count"] <= a["total"]

        expected = DATASETS | (HIDDEN[states] if a["hidden_size"] else {})
        assert set(f) == set(expected) | {"prompt_id"}, set(f)
        for name, dtype in expected.items():
            assert f[name].dtype == dtype and f[name].chunks is None, name
        info = h5py.check_string_dtype(f["prompt_id"].dtype)
        assert info.encoding == "utf-8" and info.length is not None

        offsets, start = f["offsets"][:], f["answer_start"][:]
        assert len(offsets) == len(start) + 1 == len(f["prompt_id"]) + 1
        assert offsets[0] == 0 and offsets[-1] == len(f["tokens"])
        lengths = np.diff(offsets)
        assert (start >= 1).all() and (start < lengths).all()
        assert ((f["tokens"][:] >= 0) & (f["tokens"][:] < a["vocab_size"])).all()
        if a["hidden_size"]:
            rows, answers = np.diff(f["hidden_offsets"][:]), lengths - start
            assert f["hidden"].shape == (rows.sum(), a["hidden_size"])
            recorded = rows > 0
            assert (rows[recorded] == answers[recorded]).all()
            assert recorded.all() or budget
            assert (np.diff(recorded.astype(int)) <= 0).all(), "none behind the first without states"
            row_bytes = a["hidden_size"] + 4 if states == "int8" else 2 * a["hidden_size"]
            used[0] += int(rows.sum() * row_bytes)
            assert not budget or used[0] <= budget
            assert not (used[1] and recorded.any()), "states behind an answer without"
            used[1] = used[1] or not recorded.all()
            if states == "int8" and rows.sum():
                assert (np.abs(f["hidden"][:].astype(int)).max(axis=1) <= 127).all()
                assert f["hidden_scale"].shape == (rows.sum(),)
        return first + a["count"], len(start), bool(a["last"])


def show(path):
    with h5py.File(path) as f:
        for name, value in f.attrs.items():
            kind = f"{value.dtype}" if hasattr(value, "dtype") and value.dtype.kind in "iu" else "text"
            print(f"  {name:12} {kind:7} {value!r}")
        for name, dataset in f.items():
            print(f"  /{name:14} {dataset.dtype} {list(dataset.shape)}  {dataset[:3].tolist()}")


def read_answers(path):
    # The snippet of data/dataset/FORMAT.md.
    with h5py.File(path) as f:
        tokens, offsets, start = f["tokens"][:], f["offsets"][:], f["answer_start"][:]
        for i, name in enumerate(f["prompt_id"].asstr()):
            sample = tokens[offsets[i] : offsets[i + 1]]
            print(name, "prompt:", sample[: start[i]], "answer:", sample[start[i] :])


def read_hidden(path):
    with h5py.File(path) as f:
        if "hidden_scale" in f:
            values = f["hidden"][:] * f["hidden_scale"][:][:, None]
            print("hidden", values.shape, values[:1])
        elif "hidden" in f:
            bits = f["hidden"][:].astype(np.uint32) << 16  # a bfloat16 is the upper half of a float32
            print("hidden", bits.view(np.float32).shape, bits.view(np.float32)[:1])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    shards = sorted(pathlib.Path(sys.argv[1]).glob("shard-*.h5"))
    assert shards, "no shards"
    first, samples, last, used = 0, 0, False, [0, False]
    for path in shards:
        assert not last, f"{path}: behind the last shard"
        first, count, last = check_shard(path, first, used)
        samples += count
    print(f"{len(shards)} shards, {samples} samples of {first} prompts, {'complete' if last else 'incomplete'}")
    show(shards[0])
    read_answers(shards[0])
    read_hidden(shards[0])


if __name__ == "__main__":
    main()
