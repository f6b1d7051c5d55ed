"""Makes small tokenizers, and what the packages sentencepiece, tokenizers and transformers do with text.

    pip install sentencepiece tokenizers transformers gguf protobuf
    python3 tools/dev/make_tokenizer_golden.py make                     # tests/golden/tokenizers/, tokenizer_*.json
    python3 tools/dev/make_tokenizer_golden.py show NAME FIRST COUNT    # random texts and their ids, to find a difference

Tokenizers that are there are kept: remove one to have it made anew. tokenizer_digests.json holds digests of the ids of 10,000
random texts, which tests/data/tokenizer_digest_test.cpp makes, too; tokenizer_cases.json the ids of the texts below, and the
prompts that transformers makes with the demo model's chat template (tools/get_demo_model.sh gets that model).
"""

import hashlib
import io
import json
import pathlib
import sys

import gguf
import sentencepiece
import tokenizers
import transformers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
SMALL = GOLDEN / "tokenizers"
DEMO_MODEL = ROOT / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXTS, BLOCK = 10_000, 1_000
PIECES = ["the", " the", "  ", "\n", "\r\n", "\t", "'s", "'LL", "12", "3456", "\u00c9t\u00e9", "\u3000", "\u2581", "e\u0301",
          "\U0001F469\u200D\U0001F4BB", "!?", "don't", "\u2028", ".", "<s>", " </s> ", "<tool>", "  <tool>  ", "<sep>",
          "a<sep>b", "<unk>", "\uFB01", "\uFF21", "<|endoftext|>", "<pad>"]


# Devanagari, symbols, Chinese, pictures, Korean, private and compatibility characters: nothing that Unicode has had for a
# short time only, so that the packages and PCRE2 agree on what it is.
RANGES = [(0x900, 0x70), (0x2000, 0xC00), (0x4E00, 0x51A5), (0x1F300, 0x200), (0xAC00, 0x2BA4), (0xE000, 0x1B00)]


LISTED = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "\t\n", "\r\n\r\n", " \n ", "Hello", " Hello", "Hello World", " Hello  World ",
    "the lamp, the keeper, and the sea", "THE LAMP", "It's the keepers' lamp; we'll see, they've said, I'm sure he'd stay.", "IT'S WE'LL",
    "3", "33", "333", "3333", "33333", "333333", "3333333", "12,345.67", "1 000 000", "a1b22c333", "x=y+z*(2-1)/3;", "if (a != b) { return 0; }",
    "    indented\n        twice\n\tby a tab\n", "!!!", "?!...", "\"quoted\" 'single' (bracketed) [square] {curly}", "https://example.org/a?b=c&d=e#f",
    "e-mail: somebody@example.org", "na\u00efve caf\u00e9, \u00c5ngstr\u00f6m, stra\u00dfe", "e\u0301 is \u00e9", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
    "\u0939\u093f\u0928\u094d\u0926\u0940", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u6771\u4eac\u306f\u5927\u304d\u3044\u3002", "\uc548\ub155\ud558\uc138\uc694", "\u3000wide\u3000spaces\u3000",
    "\U0001F600", "\U0001F469\u200D\U0001F4BB codes \U0001F1F8\U0001F1EE", "\u2581already marked", "zero\u200bwidth", "a\u00a0b", "\u2028line\u2029paragraph",
    "one\ntwo\r\nthree\rfour", "A sentence. Another one! A third?  A fourth after two spaces.", "\u00bd \u00b2 \u2167 \u0664", "\x7f\x01",
]
QUESTIONS = ["Why is the sea salt?", "Name three trees that keep their leaves in winter.", "What is 17 times 23?", "Say hello in Finnish.",
             "Write a line about a lamp.", "  two spaces before", "Is this a question\nover two lines?", "\u6771\u4eac\u306f?", "{\"a\": [1, 2]}", "It's late; who's there?"]


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
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lines = [line for file in (ROOT / "data/starter_topics.cpp", *pages) for line in file.read_text().splitlines()]
    return [" ".join(line.replace('"', " ").split()) for line in lines if len(line) > 20][:900]


def train(name, model_type, **settings):
    if (SMALL / name).exists():
        return
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


def save(tokenizer, name):
    if not (SMALL / name).exists():
        tokenizer.save(str(SMALL / name))


def small_jsons():
    spaces = normalizers.Replace(" ", "\u2581")
    llama = bpe_from_pieces(byte_fallback=True)
    llama.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), spaces])
    llama.add_special_tokens([AddedToken("<unk>", normalized=False), AddedToken("<s>", normalized=True),
                              AddedToken("</s>", normalized=False, rstrip=True)])
    llama.add_tokens([AddedToken("<tool>", normalized=False, lstrip=True), AddedToken("<sep>", normalized=True)])
    save(llama, "llama.json")

    gemma = bpe_from_pieces(byte_fallback=True)
    gemma.normalizer = spaces
    gemma.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    gemma.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("<pad>", normalized=False)])
    gemma.add_tokens([AddedToken("  ", normalized=False), AddedToken("<sep>", normalized=False, single_word=True)])
    save(gemma, "gemma.json")

    first = bpe_from_pieces()
    first.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    first.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("</s>", normalized=False)])
    save(first, "metaspace_first.json")

    unigram = Tokenizer(models.Unigram(pieces_of("unigram.model"), unk_id=0, byte_fallback=False))
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    unigram.add_special_tokens([AddedToken("<unk>", normalized=False), AddedToken("<s>", normalized=False),
                                AddedToken("</s>", normalized=False)])
    unigram.add_tokens([AddedToken("\uFF21", normalized=True), AddedToken("<pad>", normalized=False)])
    save(unigram, "unigram.json")


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


def byte_level(words, **settings):
    """A tokenizer of 256 bytes and 250 merges, learnt from words as this family cuts them."""
    tokenizer = Tokenizer(models.BPE(**settings))
    tokenizer.pre_tokenizer = words
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=506, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    return tokenizer


def with_end(tokenizer):
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def family(name):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def small_byte_levels():
    save(with_end(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))), "gpt2.json")
    known = json.loads(byte_level(family("llama-bpe"), ignore_merges=True).to_str())
    known["model"]["vocab"]["\u0120lamp"] = len(known["model"]["vocab"])  # a word that no merge makes
    save(with_end(Tokenizer.from_str(json.dumps(known))), "llama3.json")
    if not (SMALL / "qwen2/vocab.json").exists():
        (SMALL / "qwen2").mkdir(exist_ok=True)
        byte_level(family("qwen2")).model.save(str(SMALL / "qwen2"))


def qwen2(normal_form=None):
    tokenizer = Tokenizer(models.BPE.from_file(str(SMALL / "qwen2/vocab.json"), str(SMALL / "qwen2/merges.txt")))
    if normal_form:
        tokenizer.normalizer = normal_form
    tokenizer.pre_tokenizer = family("qwen2")
    return tokenizer


def write_gguf(name, model, tokens, types, **more):
    if (SMALL / name).exists():
        return
    writer = gguf.GGUFWriter(str(SMALL / name), "llama")
    writer.add_tokenizer_model(model)
    if "pre" in more:
        writer.add_tokenizer_pre(more["pre"])
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if "merges" in more:
        writer.add_token_merges(more["merges"])
        writer.add_eos_token_id(more["eos"])
    else:
        writer.add_token_scores(more["scores"])
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_add_bos_token(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def small_ggufs():
    known = json.loads((SMALL / "gpt2.json").read_text())
    ids = known["model"]["vocab"] | {each["content"]: each["id"] for each in known["added_tokens"]}
    tokens = sorted(ids, key=ids.get)
    special = {each["content"] for each in known["added_tokens"]}
    merges = [each if isinstance(each, str) else " ".join(each) for each in known["model"]["merges"]]
    write_gguf("gpt2.gguf", "gpt2", tokens, [3 if token in special else 1 for token in tokens], pre="gpt-2", merges=merges,
               eos=ids["<|endoftext|>"])
    message = sentencepiece_model_pb2.ModelProto.FromString((SMALL / "bpe.model").read_bytes())
    write_gguf("bpe.gguf", "llama", [piece.piece for piece in message.pieces], [int(piece.type) for piece in message.pieces],
               scores=[piece.score for piece in message.pieces])


def encoders():
    """Name -> text -> numbers."""
    result = {}
    for path in sorted(SMALL.glob("*.model")):
        result[path.name] = sentencepiece.SentencePieceProcessor(model_file=str(path)).encode
    for path in sorted(SMALL.glob("*.json")):
        tokenizer = Tokenizer.from_file(str(path))
        result[path.name] = lambda text, t=tokenizer: t.encode(text, add_special_tokens=False).ids
    tokenizer = qwen2(normalizers.NFC())
    result["qwen2"] = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    for name, cutter in cutters().items():  # where each word ends, in characters
        result["words/" + name] = lambda text, c=cutter: [end for _, (_, end) in c.pre_tokenize_str(text)] if text else []
    return result


def cases():
    """Ids of LISTED, and prompts of the demo model."""
    demo = transformers.AutoTokenizer.from_pretrained(DEMO_MODEL.parent, gguf_file=DEMO_MODEL.name)
    demo.backend_tokenizer.pre_tokenizer = cutters()["smollm"]  # as its tokenizer.json has it; GGUF files only name it
    tokens = {name: Tokenizer.from_file(str(SMALL / name)) for name in ["gpt2.json", "llama3.json"]} | {"qwen2": qwen2()}
    ids = {name: [each.encode(text, add_special_tokens=False).ids for text in LISTED] for name, each in tokens.items()}
    ids["bpe.model"] = [sentencepiece.SentencePieceProcessor(model_file=str(SMALL / "bpe.model")).encode(text) for text in LISTED]
    ids["demo model"] = [demo(text, add_special_tokens=False).input_ids for text in LISTED]
    prompts = [{"question": each, "ids": demo.apply_chat_template([{"role": "user", "content": each}], add_generation_prompt=True,
                                                                  tokenize=True, return_dict=False)} for each in QUESTIONS]
    return {"how": "tools/dev/make_tokenizer_golden.py", "sentencepiece": sentencepiece.__version__, "tokenizers": tokenizers.__version__,
            "transformers": transformers.__version__, "texts": LISTED, "ids": ids, "prompts": prompts}


def digests(encode):
    result, hashed = [], hashlib.sha256()
    for i, text in enumerate(texts(TEXTS)):
        hashed.update("".join(f"{id};" for id in encode(text) + [-1]).encode())
        if (i + 1) % BLOCK == 0:
            result.append(hashed.hexdigest()[:16])
            hashed = hashlib.sha256()
    return result


def main():
    if sys.argv[1] == "show":
        name, first, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        encode = encoders()[name]
        for text in list(texts(first + count))[first:]:
            print(json.dumps(text), *encode(text))
        return
    small_models()
    small_jsons()
    small_byte_levels()
    small_ggufs()
    golden = {"how": "tools/dev/make_tokenizer_golden.py", "sentencepiece": sentencepiece.__version__,
              "tokenizers": tokenizers.__version__, "texts": TEXTS, "block": BLOCK,
              "digests": {name: digests(encode) for name, encode in encoders().items()}}
    (GOLDEN / "tokenizer_digests.json").write_text(json.dumps(golden, indent=1) + "\n")
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in cases().items()]
    (GOLDEN / "tokenizer_cases.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
