"""Writes tests/golden/NAME_logits.json: what transformers computes, for golden_logits_test.cpp.

Development only. Needs: pip install torch==2.11.0 transformers==5.23.0 accelerate gguf
Run:   python tools/dev/make_golden_logits.py .deps/models/SmolLM2-135M-Instruct.Q4_1.gguf smollm2 200
       python tools/dev/make_golden_logits.py tests/golden/tiny_model.gguf tiny_model 200
       python tools/dev/make_golden_logits.py .deps/models/Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf qwen2.5_coder 24
"""

import hashlib
import json
import pathlib
import sys

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

NUM_LARGEST = 8
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"

TEXT = """The old lighthouse stood on a rock at the mouth of the bay, and every evening its keeper
climbed one hundred and twelve steps to light the lamp. She had done so for thirty years. In that
time she had seen ships of every kind: fishing boats that came home low in the water, ferries full
of people who waved, and once, on a winter night, a sailing ship without a single light. She wrote
all of it in a book with a green cover. "What do you write it for?" her nephew asked when he came to
visit in July. She thought about it for a while. "Because the sea forgets," she said, "and somebody
should not." He laughed, but he stayed until dark, and together they counted: 7 trawlers, 2 tugs,
1 yacht with red sails. Afterwards they made tea, and she showed him how the lens works. A small
flame, she explained, is enough, as long as the glass around it bends every ray in the same
direction. That is why the light could be seen from twenty miles away, even through rain.
Years later, when he was an engineer himself, he remembered that evening more clearly than most.
""".replace("\n", " ")


def main() -> None:
    model_path = pathlib.Path(sys.argv[1]).absolute()
    output = GOLDEN / f"{sys.argv[2]}_logits.json"
    num_tokens = int(sys.argv[3])
    source = {"gguf_file": model_path.name}
    tokenizer = AutoTokenizer.from_pretrained(model_path.parent, **source)
    model = AutoModelForCausalLM.from_pretrained(
        model_path.parent, dtype=torch.float32, attn_implementation="eager", **source).eval()
    tokens = tokenizer(TEXT, add_special_tokens=False).input_ids[:num_tokens]
    assert len(tokens) == num_tokens, f"the text has only {len(tokens)} tokens"
    with torch.inference_mode():
        logits = model(torch.tensor([tokens])).logits[0].float()  # [T, V]
    largest = logits.topk(NUM_LARGEST)
    golden = {
        "made_by": "tools/dev/make_golden_logits.py, "
                   f"transformers {transformers.__version__}, torch {torch.__version__}, "
                   "float32, eager attention, CPU",
        "model": model_path.name,
        "model_sha256": hashlib.sha256(model_path.read_bytes()).hexdigest(),
        "tokens": tokens,
        "argmax": largest.indices[:, 0].tolist(),
        "top2_gap": [round(x, 6) for x in (largest.values[:, 0] - largest.values[:, 1]).tolist()],
        "logsumexp": [round(x, 6) for x in logits.double().logsumexp(-1).tolist()],
        "largest_ids": largest.indices.tolist(),
        "largest_logits": [[round(x, 5) for x in row] for row in largest.values.tolist()],
    }
    # One line per key keeps the file small and its changes readable.
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    output.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{output}: {output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
