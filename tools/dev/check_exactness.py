#!/usr/bin/env python3
"""The exactness matrix on a model of any size: every field × every drafter × every situation, against plain decoding.

    tools/dev/check_exactness.py -- --config configs/demo.yaml
    tools/dev/check_exactness.py --drafters prompt_lookup,merge -- my-llama.gguf

Starts the server itself. Each request is first answered plainly and alone; then by each drafter alone, among 15 others,
behind a prompt that the KV cache holds, and with a prompt that enters in several passes. Text, token ids,
log-probabilities and reason to stop must be the same bytes. tests/server/exactness_test.cpp does this in C++ on the tests'
small model, against another implementation. Prints a table; exit status 1 where an answer differs.
"""
import argparse
import collections
import concurrent.futures
import json
import sys

from medusa_server import MEDUSA, MedusaServer

STORY = "A list of five animals and their food. One: the cow eats grass. Two: the cat eats fish. Three:"
OTHERS = 15
WARM = {"temperature": .9, "seed": 7}
PERSON = {"type": "object", "required": ["name", "age"], "additionalProperties": False,
          "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}}}


def fields_of(text, ids):
    """Name -> what a request asks for. text and ids: what plain greedy decoding goes on with."""
    middle = text[len(text) // 2:len(text) // 2 + 4]
    bias = {str(ids[0]): -3, str(ids[3]): 2.5, str(ids[-1]): -100}
    return {
        "nothing": {},
        "seed": WARM,
        "top_p": {**WARM, "top_p": .7},
        "top_k": {**WARM, "top_k": 5},
        "min_p": {**WARM, "min_p": .1},
        "presence_penalty": {"presence_penalty": 1.5},
        "frequency_penalty": {"frequency_penalty": .6},
        "repetition_penalty": {"repetition_penalty": 1.3},
        "penalties, sampled": {**WARM, "presence_penalty": -.5, "frequency_penalty": .4, "min_p": .02},
        "logit_bias": {"logit_bias": bias},
        "min_tokens": {"min_tokens": 30, "stop": [text[4:7]]},
        "stop": {"stop": [middle, "never in it"]},
        "stop_token_ids": {**WARM, "stop_token_ids": sorted(set(ids[10:14]))},
        "max_tokens": {"max_tokens": 5},
        "n": {**WARM, "n": 3},
        "echo": {"echo": True, "max_tokens": 12},
        "tree_size": {"medusa": {"tree_size": 3}},
        "regex": {"medusa": {"regex": "( [a-z]+){4,9}\\."}},
        "json_schema": {**WARM, "response_format": {
            "type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}},
        "everything": {**WARM, "presence_penalty": .3, "frequency_penalty": .2, "repetition_penalty": 1.1,
                       "logit_bias": bias, "top_k": 50, "top_p": .95, "min_p": .01, "min_tokens": 20, "n": 2,
                       "echo": True, "stop": [middle]},
    }


class Matrix:
    def __init__(self, server, tokens, long_tokens):
        self.server, self.tokens = server, tokens
        self.short = STORY
        self.long = STORY
        while len(server.ask("/tokenize", {"prompt": self.long})["tokens"]) < long_tokens:
            self.long += " " + STORY
        plain = self.ask(self.short, {}, "none")["choices"][0]
        self.fields = fields_of(plain["text"], plain["token_ids"])
        self.plain = {(prompt, name): self.told(self.ask(prompt, fields, "none"))
                      for prompt in (self.short, self.long) for name, fields in self.fields.items()}
        self.wrong = collections.Counter()
        self.right = collections.Counter()

    def ask(self, prompt, fields, drafter):
        body = {"prompt": prompt, "temperature": 0, "seed": 1, "max_tokens": self.tokens, "logprobs": 2,
                "return_token_ids": True, **fields}
        body["medusa"] = {**fields.get("medusa", {}), "drafter": drafter}
        answer = self.server.ask("/v1/completions", body)
        assert "warnings" not in answer.get("medusa", {}), answer["medusa"]
        return answer

    @staticmethod
    def told(answer):
        return json.dumps(answer["choices"], sort_keys=True)

    def check(self, drafter, situation, prompt, name):
        answer = self.ask(prompt, self.fields[name], drafter)
        same = self.told(answer) == self.plain[prompt, name]
        (self.right if same else self.wrong)[drafter, situation] += 1
        if not same:
            print(f"{drafter}, {situation}, {name}:\n  {self.told(answer)}\n  plain: {self.plain[prompt, name]}", file=sys.stderr)
        return answer

    def run(self, drafter):
        for name in self.fields:
            self.check(drafter, "alone", self.short, name)
        for name in self.fields:  # its prompt was just computed
            self.check(drafter, "long prompt", self.long, name)
            cached = self.check(drafter, "cached prompt", self.long, name)["usage"]["prompt_tokens_details"]["cached_tokens"]
            assert cached > 0 or self.fields[name].get("echo"), f"{name}: nothing of the prompt was cached"
        jobs = [(prompt, name) for name in self.fields for prompt in (self.short, self.long)]
        with concurrent.futures.ThreadPoolExecutor(1 + OTHERS) as company:
            list(company.map(lambda job: self.check(drafter, f"among {OTHERS} others", *job), jobs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("serve", nargs="+", help="what medusa serve gets, behind --")
    parser.add_argument("--medusa", default=MEDUSA)
    parser.add_argument("--drafters", help="some of those that the server has, by commas")
    parser.add_argument("--tokens", type=int, default=48, help="of each answer")
    parser.add_argument("--long", type=int, default=700, help="tokens of the long prompt, more than enter in one pass")
    options = parser.parse_args()
    with MedusaServer(options.serve, options.medusa) as server:
        drafters = server.ask("/v1/models")["data"][0]["medusa"]["drafters"]
        matrix = Matrix(server, options.tokens, options.long)
        for drafter in options.drafters.split(",") if options.drafters else drafters:
            matrix.run(drafter)
            drafts = server.ask("/v1/completions", {"prompt": STORY, "max_tokens": options.tokens, "temperature": 0,
                                                    "medusa": {"drafter": drafter}})["metrics"]["speculative_decoding"]
            print(f"{drafter}: {drafts['mean_acceptance_length']:.2f} tokens per step of the first text", flush=True)
    situations = sorted({situation for _, situation in matrix.right + matrix.wrong})
    print(f"\n| drafter | {' | '.join(situations)} |\n|---{'|---' * len(situations)}|")
    for drafter in dict.fromkeys(drafter for drafter, _ in matrix.right + matrix.wrong):
        counts = [f"{matrix.right[drafter, each]} of {matrix.right[drafter, each] + matrix.wrong[drafter, each]}"
                  for each in situations]
        print(f"| {drafter} | {' | '.join(counts)} |")
    sys.exit(1 if matrix.wrong else 0)


if __name__ == "__main__":
    main()
