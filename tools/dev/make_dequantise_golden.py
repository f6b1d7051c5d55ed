"""Writes tests/golden/dequantise.json: blocks of every GGUF type that medusa reads, and their
numbers as the gguf package decodes them, for dequantise_test.cpp.

Development only. Needs: pip install gguf
Run:   python tools/dev/make_dequantise_golden.py
"""

import importlib.metadata
import json
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

NUM_BLOCKS = 2
OUTPUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "dequantise.json"

# Bytes before the packed numbers: one or two half-precision numbers.
HALVES = {Type.Q4_0: 1, Type.Q4_1: 2, Type.Q5_0: 1, Type.Q5_1: 2, Type.Q8_0: 1}
BLOCK_BYTES = {Type.F32: 4, Type.F16: 2, Type.BF16: 2, Type.Q4_0: 18, Type.Q4_1: 20,
               Type.Q5_0: 22, Type.Q5_1: 24, Type.Q8_0: 34}


def random_blocks(generator: np.random.Generator, kind: Type) -> np.ndarray:
    """Random bits where the numbers lie, so that every bit of the layout matters."""
    if kind not in HALVES:
        values = generator.normal(size=8).astype(np.float32)
        if kind == Type.F32:
            return values.view(np.uint8)
        if kind == Type.F16:
            return values.astype(np.float16).view(np.uint8)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    blocks = generator.integers(0, 256, (NUM_BLOCKS, BLOCK_BYTES[kind]), dtype=np.uint8)
    halves = generator.normal(size=(NUM_BLOCKS, HALVES[kind])).astype(np.float16)
    blocks[:, :2 * HALVES[kind]] = halves.view(np.uint8)
    return blocks.reshape(-1)


def main() -> None:
    generator = np.random.default_rng(7)
    golden = {"made_by": "tools/dev/make_dequantise_golden.py, "
                         f"gguf {importlib.metadata.version('gguf')}"}
    for kind in BLOCK_BYTES:
        blocks = random_blocks(generator, kind)
        numbers = quants.dequantize(blocks, kind).astype(np.float32)
        # Bits, not decimals: the comparison is exact.
        golden[kind.name] = {"blocks": blocks.tobytes().hex(),
                             "numbers": numbers.astype("<f4").tobytes().hex()}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{OUTPUT}: {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
