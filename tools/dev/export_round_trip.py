#!/usr/bin/env python3
"""Exports trained heads of every kind of output in every format, imports what was written, and
compares the bits with the heads that were exported.

    python tools/dev/export_round_trip.py MEDUSA CONFIG RUN OUT

MEDUSA   the program
CONFIG   the YAML file of a run, e.g. configs/demo.yaml
RUN      that run's folder, with its dataset/ and its heads/. Where these read more than the hidden
         state, no other engine runs them: the refusal is shown.
OUT      a folder for the heads that are trained here and for all copies; trained heads that are
         there are taken as they are

For each kind of output heads that read the hidden state are trained for one epoch on RUN/dataset.
Needs nothing but Python. tests/golden/export_round_trip.txt is what it printed.
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys

FORMATS = ["fasterdecoding", "tgi-v2", "vllm", "tensorrt-llm", "medusa-2"]
OUTPUTS = ["shared", "own", "truncated_shared", "truncated_own"]
REFUSED = 2  # exit status


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode not in (0, REFUSED):
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done


def refusal(done):
    """What the program said, without its progress lines."""
    return "refused: " + done.stderr[done.stderr.rindex("medusa: ") + len("medusa: "):].strip()


def tensors_of(folder):
    """{name: (dtype, shape, bytes)} of heads.safetensors."""
    data = (folder / "heads.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        out[name] = (entry["dtype"], tuple(entry["shape"]), data[8 + size + begin:8 + size + end])
    return out


def train(medusa, config, dataset, folder, output):
    heads = folder / "heads"
    if (heads / "DONE").exists():
        return heads
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "dataset").exists():
        (folder / "dataset").symlink_to(dataset.resolve())
    done = run(medusa, "train", "--config", config, "--set", f"run={folder}",
               "--set", "train.heads.input=hidden", "--set", f"train.heads.output={output}",
               "--set", "train.epochs=1")
    if done.returncode != 0:
        sys.exit(done.stderr)
    return heads


def kept_rows(tensor, kept):
    """The rows of a whole output that stand for the kept tokens."""
    dtype, shape, data = tensor
    tokens = struct.unpack(f"<{kept[1][0]}i", kept[2])
    row = len(data) // shape[0]
    return dtype, (len(tokens), *shape[1:]), b"".join(data[t * row:(t + 1) * row] for t in tokens)


def compare(ours, back):
    """What a round trip kept."""
    if ours == back:
        return "all tensors, bit for bit"
    layers = [name for name in ours if ".layers." in name]
    if any(ours[name] != back.get(name) for name in layers):
        return "DIFFERS"
    kept = ours.get("kept_tokens")
    if kept is None or "kept_tokens" in back:
        return "DIFFERS"
    for name in (name for name in ours if name.endswith(".output")):
        if name not in back or kept_rows(back[name], kept) != ours[name]:
            return "DIFFERS"
    return "layers and kept rows, bit for bit; the format has no words for the kept tokens"


def round_trip(medusa, config, heads, output_kind, name, work):
    folder = work / f"{output_kind}-{name}"
    for each in (folder, work / f"{output_kind}-{name}-back"):
        shutil.rmtree(each, ignore_errors=True)
    done = run(medusa, "export", "--config", config, "--set", f"run={heads.parent}",
               "--format", name, "--output", folder, "--check")
    if done.returncode == REFUSED:
        return refusal(done).replace(str(work), "OUT")
    # A whole model is the backbone of its heads: written from a GGUF file its numbers are bfloat16.
    model = ["--set", f"backbone.model={folder}"] if name == "medusa-2" else []
    done = run(medusa, "import", folder, "--config", config, *model,
               "--set", f"run={work / f'{output_kind}-{name}-back'}")
    if done.returncode != 0:
        return "DIFFERS: not imported: " + done.stderr.strip()
    return compare(tensors_of(heads), tensors_of(work / f"{output_kind}-{name}-back" / "heads"))


def main():
    medusa, config, demo, work = (pathlib.Path(each) for each in sys.argv[1:5])
    print(f"{demo.name}'s own heads:")
    done = run(medusa, "export", "--config", config, "--set", f"run={demo}",
               "--format", "vllm", "--output", work / "refused")
    shutil.rmtree(work / "refused", ignore_errors=True)
    print("  vllm:", "exported" if done.returncode == 0 else refusal(done).replace(str(demo), "RUN"))
    failed = False
    for output in OUTPUTS:
        heads = train(medusa, config, demo / "dataset", work / output, output)
        print(f"output {output}: {len(tensors_of(heads))} tensors")
        for name in FORMATS:
            result = round_trip(medusa, config, heads, output, name, work)
            failed |= "DIFFERS" in result
            print(f"  {name}: {result}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
