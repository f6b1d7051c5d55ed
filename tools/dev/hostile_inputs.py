"""What tools/dev/attack.py hands to the program: damaged bytes, JSON, YAML, safetensors, GGUF and HTTP requests, drawn from a seed."""

import hashlib
import itertools
import json
import pathlib
import random
import struct

MODEL = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/tiny_model.gguf"


SEED = 0  # of everything that is drawn; tools/dev/attack.py sets it


def seeded(name):
    return random.Random(hashlib.sha256(f"{SEED} {name}".encode()).digest())


BAD_JSON = [
    b"",
    b"{",
    b"[]",
    b"0",
    b"null",
    b'"x"',
    b"nul",
    b"[" * 100000,
    b'{"a":' * 100000,
    b"\xff\xfe{}",
    b'{"a":1,"a":2}',
    b"1e400",
    b'"\\ud800"',
    b"\0",
]
BAD_VALUES = [
    None,
    True,
    -1,
    0,
    1.5,
    2**31,
    2**63,
    -(2**63) - 1,
    1e308,
    "",
    "x",
    "\x1b]0;t\x07",
    "\0",
    "a" * 100000,
    [],
    {},
    [[]],
    [1, "a", None],
]
BAD_YAML = [
    "",
    "null",
    "-1",
    "0",
    "1e400",
    ".nan",
    "[]",
    "{}",
    "[[1]]",
    "99999999999999999999",
    "4294967296",
    "x",
    "[1000000]",
    "*a",
    '"\\e]0;x"',
]
RAW_YAML = [
    b"",
    b"\xff\xfe",
    b"words\n",
    b"[1, 2",
    b"a: &a [*a]\n",
    b"a: *b\n",
    b"!!binary x\n",
    b"[" * 200000,
    b"- " * 100000,
    b"? " * 100000,
    b"\0",
    b"{a: b}: 1\n",
    b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1) if c > 97 else b"x"] * 9)) for c in range(97, 106)),
    b"run: x\nrun: y\n",
    b"a:\n" + b"".join(b" " * i + b"a:\n" for i in range(1, 1500)),
    b"".join(b"k%d: 1\n" % i for i in range(50000)),
]
FIELDS = [
    "messages",
    "prompt",
    "n",
    "seed",
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "stop",
    "ignore_eos",
    "logprobs",
    "echo",
    "stream",
    "stream_options",
    "medusa",
    "tools",
]
TEMPLATES = [
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{{ 'x' * 10000000000 }}",
    "{{ raise_exception('\x1b]0;no\x07') }}",
    "{{ messages[99].content }}",
    "{% include '/etc/passwd' %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{" + "(" * 5000,
    "{% if %}",
    "{{ 1 // 0 }}",
    "{{ 2 ** 100000000 }}",
    "",
]


def damaged(data, name):
    """Bytes that were cut, flipped, doubled or replaced."""
    draw = seeded(name)
    yield from (
        ("empty", b""),
        ("half", data[: len(data) // 2]),
        ("less one", data[:-1]),
        ("more", data + b"more\n"),
        ("zeros", bytes(len(data))),
        ("noise", draw.randbytes(len(data) + 16)),
        ("without its middle", data[: len(data) // 3] + data[len(data) // 2 :]),
    )
    for _ in range(4):
        at = draw.randrange(len(data))
        yield f"flipped at {at}", data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def damaged_json(text, name, count):
    """JSON with one value replaced or left out."""

    def places(value, at=()):
        yield at
        for key in value if isinstance(value, dict) else range(min(len(value), 3)) if isinstance(value, list) else ():
            yield from places(value[key], at + (key,))

    document, draw = json.loads(text), seeded(name)
    known = list(places(document))
    for _ in range(count):
        at, value = draw.choice(known), draw.choice(BAD_VALUES)
        copy = {"": json.loads(text)}
        parent, key = copy, ""
        for step in at:
            parent, key = parent[key], step
        parent[key] = value
        if draw.random() < 0.15 and at:
            del parent[key]
        yield f"{'/'.join(map(str, at))} = {str(value)[:30]!r}", json.dumps(copy[""])


def damaged_yaml(text, name, count):
    lines, draw = text.splitlines(), seeded(name)
    for _ in range(count):
        at, value = draw.randrange(len(lines)), draw.choice(BAD_YAML)
        line = lines[at].split(":")[0] + ": " + value if ":" in lines[at] else lines[at].split("-")[0] + "- " + value
        yield f"line {at + 1} = {value}", "\n".join([*lines[:at], *draw.choice([[line], [lines[at]] * 2, []]), *lines[at + 1 :]]) + "\n"
    yield from ((f"text {number}", text) for number, text in enumerate(RAW_YAML))


def damaged_safetensors(data, name):
    (size,) = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    joined = lambda text: struct.pack("<Q", len(text)) + text + body
    for number in (0, 1, size - 1, size + 1, 2**31, 2**40, 2**63, 2**64 - 1):
        yield f"header of {number} bytes", struct.pack("<Q", number) + data[8:]
    yield from ((f"header {text[:12]!r}", joined(text)) for text in BAD_JSON)
    for tensor in [key for key in header if key != "__metadata__"][:2]:
        for key, values in (
            ("dtype", ("F64", "BOOL", "x", None, "F8_E4M3")),
            ("shape", ([], [0], [-1], [1.5], [2**63], [2**32, 2**32], None, [1] * 1000)),
            ("data_offsets", ([8, 0], [0, 2**64], [-1, 4], [], [len(body), len(body) + 64], [0, 0], None)),
        ):
            for value in values:
                changed = {**header, tensor: {**header[tensor], key: value}}
                yield f"{tensor} {key} {str(value)[:20]}", joined(json.dumps(changed).encode())
    for value in (None, [], {"a": 1}, {"\x1b[31m": "\x1b]0;x\x07"}, {"format": "x" * 1000000}):
        yield f"metadata {str(value)[:20]}", joined(json.dumps({**header, "__metadata__": value}).encode())
    yield from damaged(data, name)


class Gguf:
    """A GGUF file in parts that can be changed and written again, also to what no writer would write."""

    SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, data):
        self.data, self.at = data, 8
        self.head, (tensors, keys) = data[:8], (self.number("Q"), self.number("Q"))
        self.counts = [tensors, keys]
        self.values = {}  # key: [type, bytes]
        for _ in range(keys):
            key, kind = self.text(), self.number("I")
            begin = self.at
            self.skip(kind)
            self.values[key] = [kind, data[begin : self.at]]
        self.tensors = [
            [self.text(), [self.number("Q") for _ in range(self.number("I"))], self.number("I"), self.number("Q")] for _ in range(tensors)
        ]
        self.body = data[(self.at + 31) // 32 * 32 :]

    def number(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, kind):
        if kind == 8:
            self.text()
        elif kind == 9:
            inner, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(inner)
        else:
            self.number(self.SCALARS[kind])

    def bytes(self):
        text = lambda t: struct.pack("<Q", len(t)) + t
        out = self.head + struct.pack("<2Q", *self.counts)
        out += b"".join(text(key) + struct.pack("<I", kind) + value for key, (kind, value) in self.values.items())
        for name, shape, kind, offset in self.tensors:
            out += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        return out + bytes(-len(out) % 32) + self.body


def hostile_gguf():
    """Names and bytes of models."""
    data = MODEL.read_bytes()

    def changed(change):
        model = Gguf(data)
        change(model)
        return model.bytes()

    text = lambda t: struct.pack("<Q", len(t)) + t
    for head in (b"GGUF\0\0\0\0", b"GGUF\xff\xff\xff\xff", b"FUGG\3\0\0\0"):
        yield f"head {head}", head + data[8:]
    for count, which in itertools.product((0, 1, 2**16, 2**32, 2**40, 2**63, 2**64 - 1), (0, 1)):
        yield f"{('tensors', 'keys')[which]}: {count}", changed(lambda m: m.counts.__setitem__(which, count))
    keys = Gguf(data).values
    for key, (kind, value) in keys.items():
        name = key.decode()
        yield f"{name} left out", changed(lambda m: (m.values.pop(key), m.counts.__setitem__(1, m.counts[1] - 1)))
        values = (
            [(4, struct.pack("<I", n)) for n in (0, 1, 3, 7, 2**20, 2**31 - 1, 2**31, 2**32 - 1)]
            if kind == 4
            else (
                [(6, struct.pack("<f", n)) for n in (0.0, -1.0, float("nan"), float("inf"), 1e-45)]
                if kind == 6
                else (
                    [(8, text(t)) for t in (b"", b"\xff\xfe", b"a\0b", b"\x1b]0;t\x07", b"x" * 1000000, b"gpt2", b"qwen2")]
                    if kind == 8
                    else (
                        [(9, value[:4] + struct.pack("<Q", n) + value[12:]) for n in (0, 1, 2**20, 2**40, 2**61, 2**64 - 1)]
                        + [(9, struct.pack("<I", n) + value[4:]) for n in (4, 8, 9, 13, 2**32 - 1)]
                        + [(9, struct.pack("<IQ", 9, 1) * 100000)]
                        if kind == 9
                        else []
                    )
                )
            )
        )
        for new in [*values, (8, text(b"12")), (10, b"\xff" * 8), (9, struct.pack("<IQ3I", 4, 3, 1, 2, 3))]:
            yield f"{name} = {new[0]} {new[1][:24]}", changed(lambda m: m.values.__setitem__(key, list(new)))
    for key in (
        b"general.alignment",
        b"tokenizer.ggml.bos_token_id",
        b"tokenizer.ggml.eos_token_id",
        b"split.count",
        b"llama.attention.key_length",
        b"llama.expert_count",
    ):
        for number in (0, 1, 3, 512, 2**31, 2**32 - 1):
            yield f"{key.decode()} set to {number}", changed(
                lambda m: (m.values.__setitem__(key, [4, struct.pack("<I", number)]), m.counts.__setitem__(1, len(m.values)))
            )
    for number, template in enumerate(TEMPLATES):
        yield f"template {number}", changed(
            lambda m: (
                m.values.__setitem__(b"tokenizer.chat_template", [8, text(template.encode())]),
                m.counts.__setitem__(1, len(m.values)),
            )
        )
    tokens = keys[b"tokenizer.ggml.tokens"][1]
    for token in (b"\xff\xfe\x80", b"\xed\xa0\x80", b"a\0b", b"", b"\x1b]52;c;AAAA\x07", b"<0xZZ>"):
        yield f"all tokens {token}", changed(lambda m: m.values.__setitem__(b"tokenizer.ggml.tokens", [9, tokens[:12] + text(token) * 512]))
        one = tokens.index(text(b"ing"))
        yield f"a token {token}", changed(
            lambda m: m.values.__setitem__(b"tokenizer.ggml.tokens", [9, tokens[:one] + text(token) + tokens[one + 11 :]])
        )
    for number, (part, values) in itertools.product(
        (0, 3, 46),
        enumerate(
            (
                (b"", b"\x1b[31m\xff"),
                ([], [0], [64], [2**63, 2], [2**32, 2**32], [64, 513], [1] * 5, [1] * 1000, [2**64 - 1]),
                (0, 1, 2, 8, 16, 31, 99, 2**31, 2**32 - 1),
                (1, 32, 389888, 2**31, 2**63, 2**64 - 32, 2**64 - 1),
            )
        ),
    ):
        for value in values:
            yield f"tensor {number}, part {part} = {str(value)[:30]}", changed(lambda m: m.tensors[number].__setitem__(part, value))
    for name, number in (("NaN", b"\xc0\x7f"), ("infinite", b"\x80\x7f"), ("huge", b"\x7f\x7f")):
        yield f"all numbers {name}", changed(lambda m: setattr(m, "body", number * (len(m.body) // 2)))
        yield f"a layer's numbers {name}", changed(lambda m: setattr(m, "body", m.body[:70000] + number * 4096 + m.body[78192:]))
    yield from damaged(data, "gguf")


def hostile_requests():
    """Names and bytes of HTTP requests."""
    post = lambda path, body: b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (path, len(body), body)
    for field, value in itertools.product(FIELDS, BAD_VALUES):
        for path, base in (
            (b"/v1/completions", {"prompt": "Once"}),
            (b"/v1/chat/completions", {"messages": [{"role": "user", "content": "Once"}]}),
        ):
            yield f"{field} = {str(value)[:30]!r}", post(path, json.dumps({**base, "max_tokens": 4, field: value}).encode())
    for path, body in itertools.product(
        (b"/v1/completions", b"/v1/chat/completions", b"/tokenize", b"/detokenize"),
        [*BAD_JSON, b'{"prompt": "\xff"}', b'{"prompt": "\\ud800"}'],
    ):
        yield f"{path} {body[:30]}", post(path, body)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
    for raw in (
        b"",
        b"\r\n\r\n",
        b"\xff" * 10000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/a" * 100000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100000,
        head + b"Content-Length: -1\r\n\r\n",
        head + b"Content-Length: 99999999999999999999\r\n\r\n",
        head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
        head + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\n",
        head + b"Expect: x\r\n\r\n",
    ):
        yield f"bytes {raw[:40]}", raw
    draw, good = seeded("http"), post(b"/v1/completions", b'{"prompt": "Once", "max_tokens": 4, "stop": ["a"], "logit_bias": {"5": 1}}')
    for number in range(200):
        raw = bytearray(good)
        for _ in range(draw.randrange(1, 4)):
            at, size = draw.randrange(len(raw)), draw.randrange(6)
            raw[at : at + size] = draw.choice((draw.randbytes(size), raw[:size], b"", b'"' * size, b"\r\n", b"-9" * size))
        yield f"damaged {number}", bytes(raw)
