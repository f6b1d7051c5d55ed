"""Writes tests/golden/dequantise.json: blocks of every GGUF type that medusa reads, and their
numbers as the gguf package decodes them, for dequantize_test.cpp.

Development only. Needs: pip install gguf
Run:   python tools/dev/make_dequantise_golden.py
"""

import hashlib
import importlib.metadata
import json
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Type
from gguf import quants

NUM_BLOCKS = 2
OUTPUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "dequantise.json"

# Where a block's half-precision numbers lie.
HALVES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
          Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2],
          Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0]}
TYPES = [Type.F32, Type.F16, Type.BF16, *HALVES]


def random_blocks(generator: np.random.Generator, kind: Type) -> np.ndarray:
    """Random bits where the numbers lie, so that every bit of the layout matters."""
    if kind not in HALVES:
        values = generator.normal(size=8).astype(np.float32)
        if kind == Type.F32:
            return values.view(np.uint8)
        if kind == Type.F16:
            return values.astype(np.float16).view(np.uint8)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    block_bytes = GGML_QUANT_SIZES[kind][1]
    blocks = generator.integers(0, 256, (NUM_BLOCKS, block_bytes), dtype=np.uint8)
    for at in HALVES[kind]:
        halves = generator.normal(size=(NUM_BLOCKS, 1)).astype(np.float16)
        blocks[:, at:at + 2] = halves.view(np.uint8)
    return blocks.reshape(-1)


def main() -> None:
    generator = np.random.default_rng(7)
    golden = {"made_by": "tools/dev/make_dequantise_golden.py, "
                         f"gguf {importlib.metadata.version('gguf')}"}
    for kind in TYPES:
        blocks = random_blocks(generator, kind)
        numbers = quants.dequantize(blocks, kind).astype(np.float32)
        # Bits, not decimals: the comparison is exact. Of the large blocks a digest.
        bits = numbers.astype("<f4").tobytes()
        expected = ({"numbers": bits.hex()} if len(bits) <= 512
                    else {"sha256": hashlib.sha256(bits).hexdigest()})
        golden[kind.name] = {"blocks": blocks.tobytes().hex(), **expected}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{OUTPUT}: {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
