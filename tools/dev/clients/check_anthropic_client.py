#!/usr/bin/env python3
"""Asks a running `medusa serve` with Anthropic's own client, and checks what it gets.

    tools/dev/check_clients.sh installs it, starts a server and runs this
    build/release/medusa serve --config my.yaml &
    tools/dev/clients/check_anthropic_client.py http://127.0.0.1:8080

Tools are looked at where the model's template takes them.
"""
import sys

import anthropic

TOOL = {"name": "go", "description": "Goes to a city.", "input_schema": {
    "type": "object", "properties": {"to": {"enum": ["Rome", "Oslo"]}}, "required": ["to"],
    "additionalProperties": False}}


def check_tools(client, model) -> str:
    ask = dict(model=model, messages=[{"role": "user", "content": "Where now?"}], max_tokens=120,
               extra_body={"temperature": 0}, tools=[TOOL],
               tool_choice={"type": "any", "disable_parallel_tool_use": True})
    try:
        whole = client.messages.create(**ask)
    except anthropic.BadRequestError as error:
        assert "tools" in str(error), error
        return "its template takes no tools"
    call = whole.content[0]
    assert whole.stop_reason == "tool_use" and call.type == "tool_use", whole
    assert call.name == "go" and call.input["to"] in ("Rome", "Oslo"), call
    with client.messages.stream(**ask) as stream:
        streamed = stream.get_final_message()
    assert streamed.content[0].input == call.input and streamed.stop_reason == "tool_use", streamed
    go_on = ask["messages"] + [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in whole.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "Done."}]}]
    client.messages.create(model=model, messages=go_on, max_tokens=2)
    return "with tools"


def main() -> None:
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    client = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0)
    model = client.models.list().data[0].id if hasattr(client, "models") else "any"
    ask = dict(model=model, messages=[{"role": "user", "content": "What is gravity?"}],
               max_tokens=30, extra_body={"temperature": 0})

    whole = client.messages.create(**ask)
    text = whole.content[0].text
    assert text and whole.role == "assistant", whole
    assert whole.stop_reason in ("max_tokens", "end_turn"), whole
    with client.messages.stream(**ask) as stream:
        pieces = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert pieces == text == final.content[0].text, (pieces, text)
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.stop_reason == whole.stop_reason

    counted = client.messages.count_tokens(model=model, messages=ask["messages"])
    assert counted.input_tokens == whole.usage.input_tokens
    with_system = client.messages.create(**ask, system="Be brief.")
    assert with_system.usage.input_tokens != whole.usage.input_tokens

    middle = text[len(text) // 2:][:4]
    stopped = client.messages.create(**ask, stop_sequences=[middle])
    assert stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == middle, stopped
    tools = check_tools(client, model)

    try:
        client.messages.create(**{**ask, "extra_body": {"temperature": -1}})
    except anthropic.BadRequestError as error:
        assert error.body["error"]["type"] == "invalid_request_error", error.body
    else:
        raise AssertionError("temperature -1 was taken")
    print(f"anthropic {anthropic.__version__}: as expected of {model}, {tools}")


if __name__ == "__main__":
    main()
