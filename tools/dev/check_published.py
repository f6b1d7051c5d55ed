"""Compares our tokenizers, chat templates and shipped trees with files that others published, and what their packages make of them.

    pip install sentencepiece tokenizers transformers gguf protobuf jinja2 pyyaml
    cmake --build --preset release --target text_probe
    python3 tools/dev/check_published.py FOLDER

The files are not ours to ship, so the tests have small ones of our own (tests/golden), and this is for who has these:
    FOLDER/chat_templates/*.jinja            against jinja2, with the conversations of make_jinja_golden.py; the files whose names
                                             begin with one of BUILT_IN also through the built-in template that is recognised
    FOLDER/tokenizers/NAME/tokenizer.json    against the package tokenizers, with the texts of make_tokenizer_golden.py
    FOLDER/tokenizers/NAME/tokenizer.model   against the package sentencepiece
    FOLDER/tokenizers/NAME/vocab.json        with merges.txt, of the family NAME, against tokenizers
    FOLDER/tokenizers/NAME/cases.inp, .out   llama.cpp's texts and ids (models/ggml-vocab-*.gguf.inp), for whatever NAME holds
    FOLDER/trees/published.json              {name: {"paths"}} against configs/trees
Exit status: 1 if anything differs. 2,000 random texts for each tokenizer, a minute for all.
"""

import json
import pathlib
import subprocess
import sys

import sentencepiece
import tokenizers
from tokenizers import Tokenizer, models

import make_chat_template_golden
import make_jinja_golden
import make_tokenizer_golden
import make_tree_golden

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = ROOT / "build/release/text_probe"
BUILT_IN = ("Qwen-Qwen2.5", "meta-llama-Llama-3", "mistralai-Mistral-Nemo")
RANDOM_TEXTS = 2000


def probe(questions, *arguments):
    lines = "".join(json.dumps(each) + "\n" for each in questions)
    ran = subprocess.run([PROBE, *map(str, arguments)], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.split("\n") if line]


def report(what, found, expected):
    wrong = [i for i in range(len(expected)) if i >= len(found) or found[i] != expected[i]]
    print(f"{what}: {len(expected) - len(wrong)} of {len(expected)} the same")
    for i in wrong[:3]:
        print(f"  number {i}: expected {expected[i]!r}\n    found {found[i] if i < len(found) else None!r}")
    return not wrong


def check_template(path):
    env, source = make_jinja_golden.environment(), path.read_text()
    asked = [make_jinja_golden.DEFAULTS | each for each in make_jinja_golden.CONVERSATIONS.values()]
    expected = [make_jinja_golden.render(env, source, each) for each in asked]
    found = [each.get("text") for each in probe(asked, "render", path)]
    same = report(path.name, found, [each if isinstance(each, str) else None for each in expected])
    if path.name.startswith(BUILT_IN):
        renders = [each for each in make_chat_template_golden.renders(source) if each["text"] is not None]
        found = [each["text"] for each in probe([each["messages"] for each in renders], "chat", path)]
        same &= report(path.name + ", built in", found, [each["text"] for each in renders])
    return same


def forms(folder):
    """Arguments of the probe and what a package does, of each form in which a folder holds a tokenizer."""
    if (folder / "tokenizer.json").exists():
        known = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # Special tokens are text here, as they are to the probe.
        yield [folder], lambda text: known.encode(text, add_special_tokens=False).ids
    if (folder / "tokenizer.model").exists():
        yield [folder], sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model")).encode
    if (folder / "vocab.json").exists():
        plain = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
        plain.pre_tokenizer = make_tokenizer_golden.family(folder.name)
        yield [folder, folder.name], lambda text: plain.encode(text, add_special_tokens=False).ids
    if (folder / "vocab.gguf").exists():
        yield [folder / "vocab.gguf"], None


def listed(folder):
    if not (folder / "cases.inp").exists():
        return []
    texts = (folder / "cases.inp").read_text().split("\n__ggml_vocab_test__\n")[:-1]
    return list(zip(texts, [[int(id) for id in line.split()] for line in (folder / "cases.out").read_text().split("\n")]))


def check_tokenizer(folder):
    same = True
    for arguments, encode in forms(folder):
        name = f"{folder.name} ({', '.join(str(each.name if isinstance(each, pathlib.Path) else each) for each in arguments)})"
        if encode:
            texts = [each for each in make_tokenizer_golden.texts(RANDOM_TEXTS) if "<" not in each]
            same &= report(name, probe(texts, "encode", *arguments), [encode(each) for each in texts])
        if cases := listed(folder):
            same &= report(name + ", listed", probe([text for text, _ in cases], "encode", *arguments), [ids for _, ids in cases])
    return same


def check_trees(path):
    golden = json.loads((ROOT / "tests/golden/tree_buffers.json").read_text())
    published = {name: make_tree_golden.digest(tree["paths"]) for name, tree in json.loads(path.read_text()).items()}
    return report(path.name, [golden.get(name, {}).get("digest") for name in published], list(published.values()))


def main():
    folder = pathlib.Path(sys.argv[1])
    print(f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}")
    results = [check_template(path) for path in sorted((folder / "chat_templates").glob("*.jinja"))]
    results += [check_tokenizer(path) for path in sorted((folder / "tokenizers").iterdir()) if path.is_dir()]
    results.append(check_trees(folder / "trees/published.json"))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
