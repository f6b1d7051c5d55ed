#!/usr/bin/env python3
"""Asks a running `medusa serve` for answers under many JSON schemas, and has another project's validator read them.

    tools/dev/check_clients.sh installs jsonschema, starts a server and runs this
    tools/dev/clients/check_schemas.py http://127.0.0.1:8080 [--schemas N]

The schemas are drawn by chance from the keywords of draft 2020-12, with the same seed in every run. Each is either
refused with 400, or every answer that ends by itself is valid. An answer that the server cuts off says nothing.
"""
import argparse
import collections
import json
import random
import urllib.error
import urllib.request

import jsonschema

NAMES = ["a", "b", "title", "description", "kind"]
PATTERNS = ["^[a-c]+$", "^\\d{2}$", "^(x|yz)?$", "^[^0-9]$", "^\\w\\.$", "^(?=a)a$", "^a\\b$", "^\"$", "^\\n$", "a"]
FORMATS = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference", "uuid",
           "json-pointer", "iri", "password"]


class Schemas:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def sometimes(self, schema, chance, **keywords):
        for name, value in keywords.items():
            if self.random.random() < chance:
                schema[name] = value

    def value(self):
        return self.random.choice([None, True, 0, 1, 2.5, "x", "y", [1], {"title": 1}, {"title": 2}, {"a": "b"}])

    def of_number(self, kind):
        low = self.random.randint(-20, 20)
        schema = {"type": kind}
        self.sometimes(schema, 0.4, minimum=low, maximum=low + self.random.randint(0, 40))
        self.sometimes(schema, 0.2, exclusiveMinimum=low - 1, multipleOf=self.random.choice([2, 3, 0.5]))
        return schema

    def of_string(self):
        schema = {"type": "string"}
        if self.random.random() < 0.4:
            self.sometimes(schema, 0.7, minLength=self.random.randint(0, 2), maxLength=self.random.randint(2, 4))
        else:
            self.sometimes(schema, 0.25, pattern=self.random.choice(PATTERNS), format=self.random.choice(FORMATS))
        return schema

    def of_array(self, depth):
        schema = {"type": "array", "maxItems": self.random.randint(1, 3)}
        self.sometimes(schema, 0.7, items=self.draw(depth - 1))
        self.sometimes(schema, 0.15, minItems=1, uniqueItems=True, contains={"type": "null"},
                       prefixItems=[self.draw(depth - 1)])
        return schema

    def of_object(self, depth):
        names = self.random.sample(NAMES, self.random.randint(0, 3))
        schema = {"type": "object", "properties": {name: self.draw(depth - 1) for name in names}}
        self.sometimes(schema, 0.7, required=[n for n in names if self.random.random() < 0.7])
        self.sometimes(schema, 0.4, additionalProperties=False)
        self.sometimes(schema, 0.08, additionalProperties=self.draw(depth - 1), minProperties=1, maxProperties=2,
                       patternProperties={"^[ab]$": self.draw(depth - 1)}, propertyNames={"maxLength": 2},
                       dependentRequired={"a": ["b"]}, required=["b"])
        return schema

    def draw(self, depth):
        draw = self.random.random()
        if draw < 0.06:
            return {"const": self.value()}
        if draw < 0.12:
            return {"enum": [self.value() for _ in range(3)]}
        if draw < 0.2 and depth > 0:
            return {self.random.choice(["anyOf", "oneOf", "allOf"]): [
                self.draw(depth - 1) for _ in range(self.random.randint(1, 3))]}
        if draw < 0.24:
            return {"$ref": "#/$defs/d"}
        kind = self.random.choice(["null", "boolean", "integer", "number", "string", "array", "object"])
        if depth == 0 and kind in ("array", "object"):
            kind = "string"
        schema = {"integer": lambda: self.of_number(kind), "number": lambda: self.of_number(kind),
                  "string": self.of_string, "array": lambda: self.of_array(depth),
                  "object": lambda: self.of_object(depth)}.get(kind, lambda: {"type": kind})()
        self.sometimes(schema, 0.03, **{"not": self.draw(0)} if depth > 0 else {}, const=self.value())
        if self.random.random() < 0.05:
            schema["type"] = [kind, "null"]
        return schema

    def root(self):
        schema = self.draw(2)
        if isinstance(schema, dict):
            schema["$defs"] = {"d": self.draw(1)}
        return schema


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)


def rare_bytes(url):
    """A bias to control characters, which JSON escapes, and models hardly ever write."""
    tokens = (post(f"{url}/tokenize", {"prompt": chr(code), "add_special_tokens": False})["tokens"]
              for code in range(1, 32))
    return {str(ids[-1]): 20 for ids in tokens if ids}


def ask(url, schema, seed, bias):
    """The status, and the answer's text where it has ended by itself."""
    body = {"prompt": "Once", "temperature": 1, "seed": seed, "max_tokens": 200, "logit_bias": bias, "response_format": {
        "type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    try:
        choice = post(f"{url}/v1/completions", body)["choices"][0]
        return 200, choice["text"] if choice["finish_reason"] == "stop" else None
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]["message"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8080")
    parser.add_argument("--schemas", type=int, default=150)
    parser.add_argument("--answers", type=int, default=3)
    options = parser.parse_args()
    checker = jsonschema.Draft202012Validator
    counts = collections.Counter()
    rare = rare_bytes(options.url)
    for number in range(options.schemas):
        schema = Schemas(number).root()
        validator = checker(schema, format_checker=checker.FORMAT_CHECKER)
        for seed in range(options.answers):
            status, text = ask(options.url, schema, seed, rare if seed % 2 else {})
            assert status in (200, 400), (status, text, schema)
            if status == 400:
                assert "expected" in text or "cannot be compiled" in text, (text, schema)
                counts["refused"] += 1
                break
            counts["answers"] += 1
            if text is None:
                counts["cut off"] += 1
                continue
            validator.validate(json.loads(text))
            counts["valid"] += 1
    assert counts["valid"] > options.schemas / 2 and counts["refused"] > options.schemas / 10, counts
    print(f"{options.schemas} schemas: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
