#!/usr/bin/env python3
"""Asks a running `medusa serve` with OpenAI's own client, and checks what it gets.

    pip install openai==3.54.0
    build/release/medusa serve --config my.yaml &
    tools/dev/check_openai_client.py http://127.0.0.1:8080/v1
"""
import sys

import openai


def main() -> None:
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/v1"
    client = openai.OpenAI(base_url=base, api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    ask = dict(model=model, messages=[{"role": "user", "content": "What is gravity?"}],
               max_tokens=30, temperature=0)

    whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
    text = whole.choices[0].message.content
    assert text, whole
    rows = whole.choices[0].logprobs.content
    assert len(rows) == whole.usage.completion_tokens
    assert all(row.logprob < 0 and len(row.top_logprobs) == 2 for row in rows)

    pieces, usage = "", None
    for chunk in client.chat.completions.create(**ask, stream=True,
                                                stream_options={"include_usage": True}):
        pieces += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        usage = chunk.usage or usage
    assert pieces == text, (pieces, text)
    assert usage == whole.usage

    for drafter in ("none", "prompt_lookup"):
        same = client.chat.completions.create(**ask, extra_body={"medusa": {"drafter": drafter}})
        assert same.choices[0].message.content == text, drafter

    warm = dict(ask, temperature=0.8, seed=5)
    assert (client.chat.completions.create(**warm).choices[0].message.content ==
            client.chat.completions.create(**warm).choices[0].message.content)

    two = client.completions.create(model=model, prompt=["Once upon a time", "The"], max_tokens=5,
                                    echo=True)
    assert [c.text.startswith(p) for c, p in zip(two.choices, ["Once upon a time", "The"])] == \
        [True, True]

    for wrong in ({"temperature": -1}, {"logit_bias": {"1": 2}}, {"max_tokens": 0}):
        try:
            client.chat.completions.create(**{**ask, **wrong})
        except openai.BadRequestError as error:
            assert error.param == next(iter(wrong)), error
        else:
            raise AssertionError(f"{wrong} was taken")
    try:
        client.embeddings.create(model=model, input="x")
    except openai.NotFoundError:
        pass
    print(f"openai {openai.__version__}: as expected of {model}")


if __name__ == "__main__":
    main()
