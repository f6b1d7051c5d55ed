#!/usr/bin/env python3
"""Asks a running `medusa serve` with programs and libraries built on OpenAI's API: llm, langchain-openai, llama-benchy.

    tools/dev/check_clients.sh installs them, starts a server and runs this
    tools/dev/clients/check_wrapping_clients.py http://127.0.0.1:8080
"""
import hashlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import langchain_core.messages
import langchain_openai
import tokenizers

SCHEMA = {"title": "go", "description": "Goes to a city.", "type": "object",
          "properties": {"to": {"type": "string", "enum": ["Rome", "Oslo"]}}, "required": ["to"],
          "additionalProperties": False}


def run(words, **more):
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


def check_llm(base, model, folder) -> None:
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: served\n  model_name: {json.dumps(model)}\n  api_base: {base}/v1\n  supports_schema: true\n"
        "  supports_tools: true\n")
    settings = {**os.environ, "LLM_USER_PATH": str(folder)}
    ask = [sys.executable, "-m", "llm", "-m", "served", "What is gravity?", "-o", "temperature", "0", "-o", "max_tokens"]
    whole = run([*ask, "20", "--no-stream"], env=settings)
    assert whole.strip() and run([*ask, "20"], env=settings) == whole, whole
    said = json.loads(run([*ask, "100", "--schema", json.dumps(SCHEMA)], env=settings))
    assert said["to"] in ("Rome", "Oslo"), said
    logged = json.loads(run([sys.executable, "-m", "llm", "logs", "-n", "3", "--json"], env=settings))
    assert len(logged) == 3 and all(each["input_tokens"] and each["output_tokens"] for each in logged), logged


def check_langchain(base, model) -> None:
    client = langchain_openai.ChatOpenAI(base_url=f"{base}/v1", api_key="none", model=model, temperature=0,
                                         max_tokens=120, max_retries=0, stream_usage=True)
    short = client.bind(max_tokens=20)
    whole = short.invoke("What is gravity?")
    assert whole.content and whole.usage_metadata["output_tokens"] == 20, whole
    streamed = None
    for chunk in short.stream("What is gravity?"):
        streamed = chunk if streamed is None else streamed + chunk
    assert streamed.content == whole.content and streamed.usage_metadata == whole.usage_metadata, (whole, streamed)
    call = client.bind_tools([SCHEMA], tool_choice="any").invoke("Where now?").tool_calls[0]
    assert call["name"] == "go" and call["args"]["to"] in ("Rome", "Oslo"), call
    said = [langchain_core.messages.HumanMessage("Where now?"),
            langchain_core.messages.AIMessage("", tool_calls=[call]),
            langchain_core.messages.ToolMessage("Done.", tool_call_id=call["id"])]
    short.invoke(said)
    held = client.with_structured_output(SCHEMA, method="json_schema").invoke("Where now?")
    assert held["to"] in ("Rome", "Oslo"), held


def check_llama_benchy(base, model, folder) -> None:
    # It loads a book and a tokenizer where none are at hand; both stand where it looks first. Its question for the
    # capital of France is left out: the tests' model knows stories alone.
    url = "http://127.0.0.1:9/book.txt"
    book = folder / ".cache/llama-benchy" / (hashlib.md5(url.encode()).hexdigest() + ".txt")
    book.parent.mkdir(parents=True)
    book.write_text("Once upon a time there was a dog. " * 500)
    bytes_alone = tokenizers.Tokenizer(tokenizers.models.BPE(
        vocab={sign: i for i, sign in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}, merges=[]))
    bytes_alone.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = tokenizers.decoders.ByteLevel()
    bytes_alone.save(str(folder / "tokenizer.json"))
    result = folder / "result.json"
    said = run([sys.executable, "-m", "llama_benchy", "--base-url", f"{base}/v1", "--model", model, "--tokenizer",
                str(folder / "tokenizer.json"), "--book-url", url, "--pp", "100", "--tg", "24", "--exact-tg", "--runs", "2",
                "--no-cache", "--concurrency", "1", "2", "--skip-coherence", "--exit-on-first-fail", "--format", "json",
                "--save-result", str(result)], env={**os.environ, "HOME": str(folder)})
    measured = json.loads(result.read_text())["benchmarks"]
    assert len(measured) == 2 and all(each["tg_throughput"]["mean"] > 0 for each in measured), said


def main() -> None:
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    with urllib.request.urlopen(f"{base}/v1/models") as reply:
        model = json.load(reply)["data"][0]["id"]
    with tempfile.TemporaryDirectory() as folder:
        check_llm(base, model, pathlib.Path(folder))
        check_langchain(base, model)
        check_llama_benchy(base, model, pathlib.Path(folder))
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("llm", "langchain-openai", "llama-benchy")) +
          f": as expected of {model}")


if __name__ == "__main__":
    main()
