"""Cases of tools/dev/attack.py, by kind: models and artefacts that are damaged."""

import hashlib
import json
import os
import re
import shutil

from attack_cases import CONFIG, MEDUSA, SHORT, Case, put, spill
from hostile_inputs import BAD_JSON, MODEL, damaged, damaged_json, damaged_safetensors, damaged_yaml, hostile_gguf, seeded

READERS = {  # artefact: commands that read it
    "runs/tiny/tree.yaml": [
        MEDUSA,
        ["export", *CONFIG, "--format", "vllm", "--output", "new"],
        ["calibrate", *CONFIG, "--predict", "prompts.jsonl"],
    ],
    "runs/tiny/heads/heads.safetensors": [
        MEDUSA,
        ["calibrate", *CONFIG],
        ["doctor", "runs/tiny/heads", "--backbone", "model.gguf", "--tokens", "8", "--chat-template", "plain"],
    ],
    "runs/tiny/heads/manifest.yaml": [MEDUSA, ["export", *CONFIG, "--format", "medusa-2", "--output", "new"]],
    "runs/tiny/layers.json": [["generate", *SHORT, "--drafter", "layer_skip"]],
    "runs/tiny/store.safetensors": [["generate", *SHORT, "--drafter", "retrieval"]],
    "runs/tiny/draft/draft.json": [["generate", *SHORT, "--drafter", "draft_model"], ["make-draft", *CONFIG]],
    "runs/tiny/draft/config.json": [["generate", *SHORT, "--drafter", "sequoia"]],
    "runs/tiny/draft/model.safetensors": [["generate", *SHORT, "--drafter", "specinfer"]],
    "runs/tiny/dataset/shard-00001.h5": [
        ["train", *CONFIG, "--set", "generate.heads=runs/h"],
        ["build-store", *CONFIG],
        ["dataset", "export", "new", *CONFIG],
        ["distill", *CONFIG],
    ],
    "runs/tiny/train/checkpoint/state.safetensors": [["train", *CONFIG]],
    "runs/tiny/train/checkpoint/checkpoint.yaml": [["train", *CONFIG]],
    "runs/tiny/train/metrics.jsonl": [["report", *CONFIG], ["train", *CONFIG]],
    "runs/tiny/bench.jsonl": [["bench", *CONFIG, "--questions", "prompts.jsonl", "--limit", "1"]],
    "runs/tiny/bench.json": [["bench", *CONFIG, "--questions", "prompts.jsonl", "--limit", "1"]],
    "runs/tiny/compare.json": [["report", *CONFIG]],
    "runs/tiny/joint/model/tuned.json": [["train", *CONFIG, "--set", "train.stages=[joint]"]],
    "runs/tiny/joint/model/model.safetensors": [
        ["generate", *SHORT, "--set", "backbone.model=runs/tiny/joint/model", "--set", "generate.drafter=none"]
    ],
    "runs/tiny/joint/model/config.json": [
        ["generate", *SHORT, "--set", "backbone.model=runs/tiny/joint/model", "--set", "generate.drafter=none"]
    ],
    "runs/tiny/joint/model/tokenizer.gguf": [
        ["generate", *SHORT, "--set", "backbone.model=runs/tiny/joint/model", "--set", "generate.drafter=none"]
    ],
    "prompts.jsonl": [
        ["generate", *SHORT[:2], "--questions", "prompts.jsonl", "--limit", "1"],
        ["distill", *CONFIG, "--set", "run=runs/new"],
    ],
    "text.jsonl": [["dataset", "import", "text.jsonl", *CONFIG, "--set", "run=runs/new"]],
    "heads-pt/medusa_lm_head.pt": [["import", "heads-pt/medusa_lm_head.pt", *CONFIG, "--set", "run=runs/new"]],
    "heads-pt/config.json": [["import", "heads-pt", *CONFIG, "--set", "run=runs/new"]],
    "heads-vllm/model.safetensors": [
        ["import", "heads-vllm", *CONFIG, "--set", "run=runs/new"],
        ["doctor", "heads-vllm", "--backbone", "model.gguf", "--no-measuring"],
    ],
}


def gguf_cases(_):
    for name, data in hostile_gguf():
        template = ["--set", "backbone.chat_template=" + ("null" if "template" in name else "plain")]
        for command in (
            ["inspect", "model.gguf"],
            ["generate", *SHORT, "--drafter", "none", *template],
            ["distill", *CONFIG, "--set", "run=runs/new"],
        ):
            yield Case(f"{command[0]}: {name}", command, put("model.gguf", data), writes=("model.gguf",))


def artefact_cases(attack):
    for file, commands in READERS.items():
        data = (attack.template / file).read_bytes()
        texts = [*damaged(data, file)]
        if file.endswith("json"):
            texts += [*damaged_json(data, file, 40), *((f"text {text[:12]!r}", text) for text in BAD_JSON)]
        if file.endswith("jsonl"):
            first, rest = data.split(b"\n", 1)
            texts += [(f"first line {name}", line.encode() + b"\n" + rest) for name, line in damaged_json(first, file, 40)]
            texts += [(f"first line {line[:12]!r}", line + b"\n" + rest) for line in BAD_JSON]
        texts += (
            damaged_yaml(data.decode(), file, 40)
            if file.endswith("yaml")
            else damaged_safetensors(data, file) if file.endswith("safetensors") else []
        )
        for number, (name, text) in enumerate(texts):
            for command in (commands[number % len(commands)], ["inspect", file]):
                yield Case(f"{command[0]}: {file}, {name}", command, put(file, text), writes=("new", file.split("/")[0]))
        for name in ("missing", "a folder", "a FIFO", "a loop", "endless", "another"):
            yield Case(
                f"{commands[0][0]}: {file} is {name}",
                commands[0],
                lambda folder: make_odd(folder, folder / file, name),
                endless="FIFO" in name,
                writes=("new", file.split("/")[0]),
            )


def make_odd(folder, path, name):
    path.unlink()
    makers = {
        "a folder": path.mkdir,
        "a FIFO": lambda: os.mkfifo(path),
        "a loop": lambda: path.symlink_to(path.name),
        "endless": lambda: path.symlink_to("/dev/zero"),
        "another": lambda: shutil.copy(folder / "runs/tiny/heads/heads.safetensors", path),
    }
    makers.get(name, lambda: None)()


def resealed(file, data):
    """What was altered, with a right checksum, which is no secret."""
    digest = lambda text: "sha256:" + hashlib.sha256(text).hexdigest()
    if file.endswith("checkpoint.yaml"):
        text = data[: data.rfind(b"checksum: ")] if b"checksum: " in data else data
        return text + f"checksum: {digest(text)}\n".encode()
    if file.endswith("bench.jsonl"):
        lines = [json.loads(line) for line in data.splitlines()]
        compact = lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
        for line in lines:
            line.pop("checksum", None)
            line["checksum"] = digest(compact(line).encode())
        return "".join(compact(line) + "\n" for line in lines).encode()
    if file.endswith("store.safetensors"):
        size = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
        about = {key: text for key, text in header["__metadata__"].items() if key != "checksum"}
        said = b"".join(f"{key}0;{text}0;".encode() for key, text in sorted(about.items()))
        arrays = [slice(*header[name]["data_offsets"]) for name in ("tokens", "suffixes")]
        header["__metadata__"]["checksum"] = digest(said + b"".join(body[part] for part in arrays))
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + body
    at = data.find(b"sha256:") + 7  # of a shard
    zeros = data[:at] + b"0" * 64 + data[at + 64 :]
    return data[:at] + hashlib.sha256(zeros).hexdigest().encode() + data[at + 64 :]


def sealed_cases(attack):
    """Files with a checksum, damaged and sealed again."""
    numbers = (-(2**63), -1, 0, 1, 2, 10, 512, 2**31 - 1, 2**31, 2**32, 2**62 + 1, 2**63 - 1)
    for file in (
        "runs/tiny/train/checkpoint/checkpoint.yaml",
        "runs/tiny/train/checkpoint-best/checkpoint.yaml",
        "runs/tiny/bench.jsonl",
        "runs/tiny/store.safetensors",
        "runs/tiny/dataset/shard-00000.h5",
    ):
        data, draw, texts = (attack.template / file).read_bytes(), seeded("sealed " + file), []
        if file.endswith("yaml"):
            text = data[: data.rfind(b"checksum: ")].decode()
            texts += [(name, damaged if isinstance(damaged, bytes) else damaged.encode()) for name, damaged in damaged_yaml(text, file, 40)]
            texts += [(f"step {number}", re.sub(rb"step: \d+", b"step: %d" % number, text.encode())) for number in numbers]
        elif file.endswith("jsonl"):
            first, rest = data.split(b"\n", 1)
            lines = ((name, line) for name, line in damaged_json(first, file, 80) if line.startswith("{"))
            texts += [(name, line.encode("utf-8", "surrogatepass") + b"\n" + rest) for name, line in lines]
        else:
            begin = 8 + int.from_bytes(data[:8], "little") if file.endswith("safetensors") else data.find(b"sha256:") + 71
            for number in range(80):
                at = draw.randrange(begin, len(data) - 8)
                if file.endswith("safetensors"):
                    at -= (at - begin) % 4
                size, value = draw.choice((1, 4, 8)), draw.choice(numbers)
                damage = draw.choice((draw.randbytes(size), (value % 2 ** (8 * size)).to_bytes(size, "little")))
                texts.append((f"{size} bytes at {at}, {number}", data[:at] + damage + data[at + size :]))
        commands = {
            "runs/tiny/store.safetensors": [["generate", *SHORT, "--drafter", "retrieval"]],
            "runs/tiny/dataset/shard-00000.h5": [*READERS["runs/tiny/dataset/shard-00001.h5"], ["make-draft", *CONFIG, "--set", "draft.layers=1"]],
        }.get(file, READERS.get(file, [["train", *CONFIG]]))
        for number, (name, text) in enumerate(texts):
            for command in (commands[number % len(commands)], ["inspect", file]):
                yield Case(f"{command[0]}: {file}, {name}", command, put(file, resealed(file, text)))


def folder_cases(attack):
    """Models as a Hugging Face folder, with other projects' tokenizers."""
    model = "runs/tiny/joint/model"
    tokenizers = MODEL.parent / "tokenizers"
    generate = ["generate", *SHORT, "--set", f"backbone.model={model}", "--drafter", "none"]
    for path in sorted(tokenizers.glob("*.*")):
        data = path.read_bytes()
        name = {".json": "tokenizer.json", ".model": "tokenizer.model", ".gguf": "tokenizer.gguf"}[path.suffix]
        texts = [*damaged(data, path.name)]
        if path.suffix == ".json":
            texts += [*damaged_json(data, path.name, 25), *((f"text {text[:12]!r}", text) for text in BAD_JSON)]
        for what, text in texts:

            def lay(folder):
                for old in (folder / model).glob("tokenizer*"):
                    old.unlink()
                spill(folder / model / name, text)

            yield Case(f"{path.name}, {what}", generate, lay)
            yield Case(f"inspect {path.name}, {what}", ["inspect", model], lay)
    config = (attack.template / model / "config.json").read_bytes()
    for what, text in damaged_json(config, "config", 60):
        yield Case(f"config.json, {what}", generate, put(f"{model}/config.json", text))
    weights = (attack.template / model / "model.safetensors").read_bytes()
    for what, text in damaged_safetensors(weights, "weights"):
        yield Case(f"model.safetensors, {what}", generate, put(f"{model}/model.safetensors", text))


KINDS = {"gguf": gguf_cases, "folders": folder_cases, "artefacts": artefact_cases, "sealed": sealed_cases}
