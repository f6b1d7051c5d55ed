#!/usr/bin/env python3
"""Lets two evaluation harnesses work with `medusa serve`, unchanged: EleutherAI's lm-eval and the UK AISI's inspect-ai.

    python -m venv eval && eval/bin/pip install 'lm-eval[api]' inspect-ai openai
    eval/bin/python tools/dev/check_eval_clients.py

lm-eval asks for log-likelihoods of the next token in float32, and they are compared with the logits that transformers computed for the same
model (tests/golden/smollm2_logits.json): so neither side's numbers are ours. Then either harness runs a small task of its own over the trained
heads, by the command line that its users type. Prints what came out.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from medusa_server import MEDUSA, MedusaServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_DIFFERENCE = 1e-4  # nats

CHOICES = [("The capital of France is", ["Paris", "a banana", "seven"], 0), ("Two and two make", ["purple", "four", "Tuesday"], 1),
           ("Fish live in", ["the oven", "books", "water"], 2), ("At night the sky is", ["dark", "wooden", "salty"], 0)]

TASKS = {
    "medusa_choice": """task: medusa_choice
dataset_path: json
dataset_kwargs: {data_files: DATA}
test_split: train
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: acc}]
""",
    "medusa_write": """task: medusa_write
dataset_path: json
dataset_kwargs: {data_files: DATA}
test_split: train
output_type: generate_until
doc_to_text: "Question: {{question}} what?\\nAnswer:"
doc_to_target: "{{choices[answer]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 24, temperature: 0}
metric_list: [{metric: exact_match, ignore_case: true}]
""",
}

INSPECT_TASK = """from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

@task
def capitals():
    return Task(dataset=[Sample(input="What is the capital of " + country + "?", target=capital)
                         for country, capital in (("France", "Paris"), ("Italy", "Rome"), ("Japan", "Tokyo"))],
                solver=generate(), scorer=includes())
"""


def name_of(server):
    return server.ask("/v1/models")["data"][0]["id"]


def check_loglikelihoods(server):
    """Of tokens that follow the golden text, one at a time."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    golden = json.loads((ROOT / "tests/golden/smollm2_logits.json").read_text())
    lm = LocalCompletionsAPI(model=name_of(server), base_url=server.url + "/v1/completions", tokenizer_backend="remote", num_concurrent=4)
    requests, expected = [], []
    for i in range(8, len(golden["tokens"]) - 1):
        following = golden["tokens"][i + 1]
        if following not in golden["largest_ids"][i]:
            continue
        context = server.ask("/detokenize", {"tokens": golden["tokens"][:i + 1]})["prompt"]
        whole = server.ask("/detokenize", {"tokens": golden["tokens"][:i + 2]})["prompt"]
        if context.endswith((" ", "\n")) or lm.tok_encode(whole) != golden["tokens"][:i + 2]:
            continue  # lm-eval would cut it elsewhere
        requests.append(Instance(request_type="loglikelihood", doc={}, arguments=(context, whole[len(context):]), idx=0))
        expected.append(golden["largest_logits"][i][golden["largest_ids"][i].index(following)] - golden["logsumexp"][i])
    got = lm.loglikelihood(requests, disable_tqdm=True)
    differences = [abs(value - right) for (value, _), right in zip(got, expected)]
    assert len(differences) > 50, len(differences)
    print(f"lm-eval, {len(differences)} log-likelihoods beside transformers': largest difference {max(differences):.2e} nats, "
          f"mean log-likelihood {sum(expected) / len(expected):.4f}")
    assert max(differences) <= MOST_DIFFERENCE and all(math.isfinite(value) for value, _ in got)


def run_lm_eval(server, folder):
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"question": question, "choices": choices, "answer": answer}) + "\n"
                            for question, choices, answer in CHOICES))
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(text.replace("DATA", json.dumps(str(data))))
    done = subprocess.run([pathlib.Path(sys.executable).with_name("lm_eval"), "run", "--model", "local-completions", "--model_args",
                           f"model={name_of(server)},base_url={server.url}/v1/completions,tokenizer_backend=remote,num_concurrent=4",
                           "--include_path", folder, "--tasks", ",".join(TASKS)], capture_output=True, text=True,
                          env={**os.environ, "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")})
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stdout[done.stdout.index("|"):].rstrip())


def run_inspect(server, folder):
    (folder / "capitals.py").write_text(INSPECT_TASK)
    done = subprocess.run([pathlib.Path(sys.executable).with_name("inspect"), "eval", "capitals.py", "--model",
                           f"openai-api/medusa/{name_of(server)}", "--display", "plain", "--no-log-realtime", "--temperature", "0"],
                          cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "MEDUSA_API_KEY": "none", "MEDUSA_BASE_URL": server.url + "/v1"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    print("\n".join(line for line in lines if any(word in line for word in ("accuracy", "total time", "openai-api", "includes"))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--medusa", default=MEDUSA)
    parser.add_argument("--model", default=str(ROOT / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
    parser.add_argument("serve", nargs="*", help="more options of medusa serve for the tasks, behind --")
    options = parser.parse_args()
    with MedusaServer([options.model, "--dtype", "float32"], options.medusa) as server:
        check_loglikelihoods(server)
    with tempfile.TemporaryDirectory() as folder, MedusaServer([options.model, *options.serve], options.medusa) as server:
        run_lm_eval(server, pathlib.Path(folder))
        run_inspect(server, pathlib.Path(folder))


if __name__ == "__main__":
    main()
