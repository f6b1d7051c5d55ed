#!/usr/bin/env python3
"""Asks a running `medusa serve` with OpenAI's own client, and checks what it gets.

    tools/dev/check_clients.sh installs it, starts a server and runs this
    build/release/medusa serve --config my.yaml &
    tools/dev/clients/check_openai_client.py http://127.0.0.1:8080

Tools are looked at where the model's template takes them.
"""
import json
import sys

import openai


TOOL = {"type": "function", "function": {"name": "go", "description": "Goes to a city.", "parameters": {
    "type": "object", "properties": {"to": {"enum": ["Rome", "Oslo"]}}, "required": ["to"],
    "additionalProperties": False}}}


def check_tools(client, model) -> str:
    ask = dict(model=model, messages=[{"role": "user", "content": "Where now?"}], tools=[TOOL],
               tool_choice="required", parallel_tool_calls=False, max_tokens=120, temperature=0)
    try:
        whole = client.chat.completions.create(**ask).choices[0]
    except openai.BadRequestError as error:
        assert error.param == "tools", error
        return "its template takes no tools"
    assert whole.finish_reason == "tool_calls" and whole.message.content is None, whole
    call = whole.message.tool_calls[0]
    assert call.function.name == "go", call
    assert json.loads(call.function.arguments)["to"] in ("Rome", "Oslo"), call
    with client.chat.completions.stream(**ask) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert streamed.message.tool_calls[0].function.arguments == call.function.arguments, streamed
    assert streamed.finish_reason == "tool_calls"
    go_on = ask["messages"] + [whole.message.model_dump(exclude_none=True),
                               {"role": "tool", "tool_call_id": call.id, "content": "Done."}]
    client.chat.completions.create(model=model, messages=go_on, max_tokens=2)

    flat = {"type": "function", **TOOL["function"], "strict": True}
    response = client.responses.create(model=model, input="Where now?", tools=[flat],
                                       tool_choice={"type": "function", "name": "go"})
    item = response.output[0]
    assert item.type == "function_call" and json.loads(item.arguments)["to"], response
    client.responses.create(model=model, max_output_tokens=2, input=[
        {"role": "user", "content": "Where now?"}, item.model_dump(),
        {"type": "function_call_output", "call_id": item.call_id, "output": "Done."}])
    return "with tools"


def check_responses(client, model, text) -> None:
    ask = dict(model=model, input="What is gravity?", max_output_tokens=30, temperature=0)
    whole = client.responses.create(**ask)
    assert whole.output_text == text, (whole.output_text, text)
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens
    with client.responses.stream(**ask) as stream:
        pieces = "".join(event.delta for event in stream
                         if event.type == "response.output_text.delta")
    assert pieces == text, (pieces, text)
    try:
        client.responses.create(**{**ask, "previous_response_id": "resp_1"})
    except openai.BadRequestError as error:
        assert error.param == "previous_response_id", error
    else:
        raise AssertionError("previous_response_id was taken")


def check_full_queue(client, model) -> None:
    """Who does not wait is told that there are too many; who does gets an answer."""
    many = dict(model=model, prompt="Once upon a time", n=16, max_tokens=200, temperature=1,
                extra_body={"ignore_eos": True, "medusa": {"drafter": "none"}})
    streams = []
    try:
        for _ in range(100):
            streams.append(client.completions.create(**many, stream=True))
    except openai.RateLimitError as error:
        assert error.code == "queue_full" and error.response.headers["retry-after"] == "1", error
    else:
        raise AssertionError("the queue has no end")
    patient = client.with_options(max_retries=20)
    assert patient.completions.create(**many).choices[15].text
    for stream in streams:
        stream.close()


def main() -> None:
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
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
    assert all(p in c.text for c, p in zip(two.choices, ["Once upon a time", "The"])), two

    check_responses(client, model, text)
    tools = check_tools(client, model)

    for wrong in ({"temperature": -1}, {"logit_bias": {"1": 200}}, {"max_tokens": 0}):
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
    else:
        raise AssertionError("there are embeddings")
    check_full_queue(client, model)
    print(f"openai {openai.__version__}: as expected of {model}, {tools}")


if __name__ == "__main__":
    main()
