"""Makes small tokenizers and digests of what the sentencepiece and tokenizers packages do with random text.

    python3 tools/dev/make_tokenizer_golden.py make TOKENIZER_FOLDER     # tests/golden/tokenizers/, tokenizer_digests.json
    python3 tools/dev/make_tokenizer_golden.py show TOKENIZER_FOLDER NAME FIRST COUNT   # texts and ids, to find a difference

TOKENIZER_FOLDER holds the published tokenizers beside the checkout (../shared/data/tokenizers). Needs the packages
tokenizers and sentencepiece. tests/data/tokenizer_digest_test.cpp makes the same texts and compares.
"""

import hashlib
import io
import json
import pathlib
import sys

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
SMALL = GOLDEN / "tokenizers"
TEXTS, BLOCK = 10_000, 1_000
PIECES = ["the", " the", "  ", "\n", "\r\n", "\t", "'s", "'LL", "12", "3456", "\u00c9t\u00e9", "\u3000", "\u2581", "e\u0301",
          "\U0001F469\u200D\U0001F4BB", "!?", "don't", "\u2028", ".", "<s>", " </s> ", "<tool>", "  <tool>  ", "<sep>",
          "a<sep>b", "<unk>", "\uFB01", "\uFF21", "<|endoftext|>", "<pad>"]


# Devanagari, symbols, Chinese, pictures, Korean, private and compatibility characters: nothing that Unicode has had for a
# short time only, so that the packages and PCRE2 agree on what it is.
RANGES = [(0x900, 0x70), (0x2000, 0xC00), (0x4E00, 0x51A5), (0x1F300, 0x200), (0xAC00, 0x2BA4), (0xE000, 0x1B00)]


def texts(count):
    """The same as random_texts() of the test: numbers of SplitMix64, made into characters."""
    state = 2026

    def draw(below):
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return (z ^ z >> 31) % below

    for _ in range(count):
        text = ""
        for _ in range(draw(41)):
            kind = draw(8)
            if kind < 3:
                text += chr(ord("a") + draw(26))
            elif kind == 3:
                text += PIECES[draw(len(PIECES))]
            elif kind == 4:
                text += chr(1 + draw(0x7F))
            elif kind == 5:
                text += " "
            elif kind == 6:
                text += chr(1 + draw(0x600))
            else:
                first, count = RANGES[draw(len(RANGES))]
                text += chr(first + draw(count))
        yield text


def corpus():
    here = GOLDEN.parents[1]
    pages = [here / "README.md", *sorted((here / "docs").rglob("*.md"))]
    lines = [line for file in (here / "data/starter_topics.cpp", *pages) for line in file.read_text().splitlines()]
    return [" ".join(line.replace('"', " ").split()) for line in lines if len(line) > 20][:900]


def train(name, model_type, **settings):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=out, model_type=model_type, vocab_size=500, num_threads=1,
        character_coverage=0.999, user_defined_symbols=["<tool>", "<sep>"], minloglevel=2, **settings)
    message = sentencepiece_model_pb2.ModelProto.FromString(out.getvalue())
    message.trainer_spec.ClearField("input")
    message.normalizer_spec.ClearField("normalization_rule_tsv")  # the temporary file of its rules
    (SMALL / name).write_bytes(message.SerializeToString())


def small_models():
    SMALL.mkdir(exist_ok=True)
    # As Llama's: text as it stands, byte pieces.
    train("bpe.model", "bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False)
    # As SentencePiece's defaults: a character map, spaces trimmed, an unknown token.
    rules = SMALL / "rules.tsv"
    rules.write_text("".join(f"{' '.join(f'{ord(c):X}' for c in a)}\t{' '.join(f'{ord(c):X}' for c in b)}\n" for a, b in [
        ("\uFB01", "fi"), ("\uFF21", "A"), ("e\u0301", "\u00e9"), ("\t", " "), ("\n", " "), ("\u3000", " "),
        ("\u200D", ""), ("\u2028", " "), ("\u00c9", "e\u0301")]))
    train("unigram.model", "unigram", normalization_rule_tsv=str(rules))
    train("unigram_bytes.model", "unigram", byte_fallback=True, normalization_rule_name="identity",
          remove_extra_whitespaces=False, add_dummy_prefix=False)
    rules.unlink()


def pieces_of(name):
    message = sentencepiece_model_pb2.ModelProto.FromString((SMALL / name).read_bytes())
    return [(piece.piece, piece.score) for piece in message.pieces]


def bpe_from_pieces(**settings):
    vocab = {piece: id for id, (piece, _) in enumerate(pieces_of("bpe.model"))}
    merges = [(scored[0][:cut], scored[0][cut:]) for scored in sorted(pieces_of("bpe.model")[5:], key=lambda p: -p[1])
              for cut in range(1, len(scored[0])) if scored[0][:cut] in vocab and scored[0][cut:] in vocab]
    return Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, **settings))


def small_jsons():
    spaces = normalizers.Replace(" ", "\u2581")
    llama = bpe_from_pieces(byte_fallback=True)
    llama.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), spaces])
    llama.add_special_tokens([AddedToken("<unk>", normalized=False), AddedToken("<s>", normalized=True),
                              AddedToken("</s>", normalized=False, rstrip=True)])
    llama.add_tokens([AddedToken("<tool>", normalized=False, lstrip=True), AddedToken("<sep>", normalized=True)])
    llama.save(str(SMALL / "llama.json"))

    gemma = bpe_from_pieces(byte_fallback=True)
    gemma.normalizer = spaces
    gemma.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    gemma.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("<pad>", normalized=False)])
    gemma.add_tokens([AddedToken("  ", normalized=False), AddedToken("<sep>", normalized=False, single_word=True)])
    gemma.save(str(SMALL / "gemma.json"))

    first = bpe_from_pieces()
    first.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    first.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("</s>", normalized=False)])
    first.save(str(SMALL / "metaspace_first.json"))

    unigram = Tokenizer(models.Unigram(pieces_of("unigram.model"), unk_id=0, byte_fallback=False))
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    unigram.add_special_tokens([AddedToken("<unk>", normalized=False), AddedToken("<s>", normalized=False),
                                AddedToken("</s>", normalized=False)])
    unigram.add_tokens([AddedToken("\uFF21", normalized=True), AddedToken("<pad>", normalized=False)])
    unigram.save(str(SMALL / "unigram.json"))


# What each family's published tokenizer.json cuts at, by the names that GGUF files use.
TAIL = r"[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "qwen2": CASES + TAIL % r"\p{N}",
    "llama-bpe": CASES + TAIL % r"\p{N}{1,3}",
    "tekken": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}"
              r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def cutters():
    result = {"gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
              "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])}
    for name, pattern in PATTERNS.items():
        result[name] = pre_tokenizers.Split(Regex(pattern), "isolated")
    return result


def qwen2(folder):
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERNS["qwen2"]), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return tokenizer


def encoders(folder):
    """Name -> text -> numbers."""
    result = {}
    for path in sorted(SMALL.glob("*.model")) + [folder / "mistral-v1/tokenizer.model"]:
        name = path.name if path.parent == SMALL else "mistral-v1/tokenizer.model"
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        result[name] = processor.encode
    for path in sorted(SMALL.glob("*.json")) + [folder / "gpt-2/tokenizer.json"]:
        name = path.name if path.parent == SMALL else "gpt-2/tokenizer.json"
        tokenizer = Tokenizer.from_file(str(path))
        result[name] = lambda text, t=tokenizer: t.encode(text, add_special_tokens=False).ids
    tokenizer = qwen2(folder / "qwen2")
    result["qwen2"] = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    for name, cutter in cutters().items():  # where each word ends, in characters
        result["words/" + name] = lambda text, c=cutter: [end for _, (_, end) in c.pre_tokenize_str(text)] if text else []
    return result


def digests(encode):
    result, hashed = [], hashlib.sha256()
    for i, text in enumerate(texts(TEXTS)):
        hashed.update("".join(f"{id};" for id in encode(text) + [-1]).encode())
        if (i + 1) % BLOCK == 0:
            result.append(hashed.hexdigest()[:16])
            hashed = hashlib.sha256()
    return result


def main():
    action, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if action == "show":
        name, first, count = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
        encode = encoders(folder)[name]
        for text in list(texts(first + count))[first:]:
            print(json.dumps(text), *encode(text))
        return
    small_models()
    small_jsons()
    golden = {"how": "tools/dev/make_tokenizer_golden.py", "sentencepiece": sentencepiece.__version__,
              "tokenizers": tokenizers.__version__, "texts": TEXTS, "block": BLOCK,
              "digests": {name: digests(encode) for name, encode in encoders(folder).items()}}
    (GOLDEN / "tokenizer_digests.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
