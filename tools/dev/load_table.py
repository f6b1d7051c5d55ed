#!/usr/bin/env python3
"""The speed of `medusa serve` under load, and of llama.cpp's llama-server on the same file, by turns.

    tools/dev/load_table.py --model models/my.gguf --llama-server llama.cpp/build/bin/llama-server \\
        --spec-types none,ngram-simple -- --config my.yaml --dtype stored

What follows -- goes to `medusa serve`. All servers run at the same time and one of them is asked at a time: for each round and each number
of clients everyone in turn, in an order that turns too. A client asks the next question as soon as it has an answer (a closed loop), greedily,
in a stream. Medusa is asked with its own drafter and plainly; finished answers are not shared, as the questions come again. Then it is seen
how short requests fare while a long prompt enters. With one client each round also has `medusa generate` with the same settings. Prints Markdown:
medians of rounds, with the smallest and the largest.
"""
import argparse
import http.client
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from medusa_server import MEDUSA, PATIENCE, MedusaServer

ROOT = pathlib.Path(__file__).resolve().parents[2]


class LlamaServer:
    """llama.cpp's, with what MedusaServer has."""

    def __init__(self, command, port):
        self.command, self.address = [*command, "--host", "127.0.0.1", "--port", str(port)], ("127.0.0.1", port)
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def wait_until_well(server):
    end = time.monotonic() + PATIENCE
    while True:
        assert server.process.poll() is None and time.monotonic() < end, f"{server.command} did not start"
        try:
            connection = http.client.HTTPConnection(*server.address, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(.2)


class Asked:
    """One answer: when each of its pieces came, and how many tokens it has."""

    def __init__(self, server, question, tokens, more):
        body = {"messages": [{"role": "user", "content": question}], "max_tokens": tokens, "temperature": 0, "stream": True,
                "stream_options": {"include_usage": True}, **more}
        connection = http.client.HTTPConnection(*server.address, timeout=PATIENCE)
        self.began = time.monotonic()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        assert reply.status == 200, (server.address, reply.read())
        self.times, self.tokens, self.text = [], 0, ""
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            assert "error" not in event, (server.address, event)
            for choice in event["choices"]:
                piece = choice["delta"].get("content")
                if piece:
                    self.times.append(time.monotonic())
                    self.text += piece
            if event.get("usage"):
                self.tokens = event["usage"]["completion_tokens"]
        assert self.times and self.tokens, (server.address, question)

    def first(self):
        return self.times[0] - self.began


def in_threads(count, work):
    """Runs work(i) in as many threads; raises what one of them raised."""
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:  # raised again below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def closed_loop(server, more, questions, clients, tokens):
    """All questions, each asked once. @returns tokens a second, and the answers."""
    waiting, answers, lock = list(enumerate(questions)), {}, threading.Lock()

    def client(_):
        while True:
            with lock:
                if not waiting:
                    return
                i, question = waiting.pop(0)
            answer = Asked(server, question, tokens, more)
            with lock:
                answers[i] = answer

    began = time.monotonic()
    in_threads(clients, client)
    seconds = time.monotonic() - began
    return sum(answer.tokens for answer in answers.values()) / seconds, [answers[i] for i in range(len(questions))]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values, digits=1):
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def long_prompt_check(server, more, questions, repeats):
    """Eight streams, and short requests beside them, without and with a prompt of about 2,000 tokens that enters meanwhile."""
    rows = {"first": ([], []), "gap": ([], [])}
    for repeat in range(repeats):
        for busy in (False, True):
            streams, firsts, window = [None] * 8, [], []

            def stream(i):
                if i < 8:
                    streams[i] = Asked(server, questions[i], 96, more)
                elif i == 8:
                    time.sleep(.5)  # the eight are under way
                    window.append(time.monotonic())
                    if busy:
                        words = " ".join(f"item {repeat} {n} is {n * n};" for n in range(138))
                        Asked(server, words + " What is this?", 1, more)
                    else:
                        time.sleep(1.5)
                    window.append(time.monotonic())
                else:
                    time.sleep(.6)
                    firsts.append(Asked(server, questions[9], 2, more).first())

            in_threads(10, stream)
            gaps = [b - a for one in streams for a, b in zip(one.times, one.times[1:]) if a >= window[0] and b <= window[1]]
            rows["first"][busy].extend(firsts)
            rows["gap"][busy].extend(gaps)
    print("\n| while a prompt of about 2,000 tokens enters | without it, ms | with it, ms | ratio |\n|---|---|---|---|")
    for name, label in (("first", "first token of a short prompt, p95"), ("gap", "between pieces of 8 streams, p95")):
        without, beside = (1000 * percentile(values, .95) for values in rows[name])
        print(f"| {label} | {without:.1f} | {beside:.1f} | {beside / without:.2f} |")


def generate_rate(medusa, served, questions, tokens):
    """Tokens a second of `medusa generate`, one question after the other."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps({"prompt": question}) + "\n" for question in questions)
        file.flush()
        command = [medusa, "generate", "--questions", file.name, "--json", "--max-tokens", str(tokens), *served]
        answers = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["answers"]
    stats = [answer["stats"] for answer in answers]
    return sum(each["emitted"] for each in stats) / sum(each["decode_s"] + each["prefill_s"] for each in stats)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--medusa", default=MEDUSA)
    parser.add_argument("--model", required=True)
    parser.add_argument("--questions", default=str(ROOT / "configs/bench_questions.jsonl"))
    parser.add_argument("--count", type=int, default=16, help="questions of a round")
    parser.add_argument("--clients", default="1,4,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--llama-server", help="its program")
    parser.add_argument("--spec-types", default="none", help="of llama-server, each a server of its own")
    parser.add_argument("--llama-flags", default="", help="more of them")
    parser.add_argument("--json", help="a file for the numbers")
    parser.add_argument("serve", nargs="*", help="more options of medusa serve, behind --")
    options = parser.parse_args()
    questions = [json.loads(line) for line in open(options.questions, encoding="utf-8")]
    questions = [each.get("prompt") or each.get("text") or each["turns"][0] for each in questions][:options.count]
    numbers = [int(number) for number in options.clients.split(",")]
    served = ["--model", options.model, *options.serve]
    ours = MedusaServer([*served, "--batch", "16", "--no-share"], options.medusa)
    contenders = [("medusa serve", ours, {}), ("medusa serve, plain", ours, {"medusa": {"drafter": "none"}})]
    flags = [options.llama_server, "-m", options.model, "-np", "16", "-c", "32768", "-t", "2", "--no-webui", *options.llama_flags.split()]
    for i, kind in enumerate(options.spec_types.split(",") if options.llama_server else []):
        contenders.append((f"llama-server, {kind}", LlamaServer([*flags, "--spec-type", kind], 18200 + i), {}))
    rates = {(name, clients): [] for name, _, _ in contenders for clients in numbers}
    firsts = {key: [] for key in rates}
    texts, alone = {}, []
    try:
        for _, server, more in contenders:
            wait_until_well(server)
            closed_loop(server, more, questions[:4], 4, 16)  # everything is loaded now
        for round_ in range(options.rounds):
            for clients in numbers:
                if clients == 1:
                    alone.append(generate_rate(options.medusa, served, questions, options.tokens))
                    print(f"round {round_ + 1}, medusa generate: {alone[-1]:.1f} tokens/s", file=sys.stderr)
                for turn in range(len(contenders)):
                    name, server, more = contenders[(turn + round_) % len(contenders)]
                    rate, answers = closed_loop(server, more, questions, clients, options.tokens)
                    rates[name, clients].append(rate)
                    firsts[name, clients] += [answer.first() for answer in answers]
                    texts.setdefault(name, [answer.text for answer in answers])
                    assert server is not ours or texts[name] == [answer.text for answer in answers], f"{name}: a text changed"
                    print(f"round {round_ + 1}, {clients} clients, {name}: {rate:.1f} tokens/s", file=sys.stderr)
        assert texts["medusa serve"] == texts["medusa serve, plain"], "a text is not the plain one"
        print(f"{len(questions)} questions, {options.tokens} new tokens, greedy, {options.rounds} rounds; tokens/s: median (smallest–largest)\n")
        print("| clients | server | tokens/s | ÷ own plain | first token p50, p95, ms |\n|---|---|---|---|---|")
        for clients in numbers:
            for name, _, _ in contenders:
                plain = rates["medusa serve, plain" if name.startswith("medusa") else "llama-server, none", clients] \
                    if not name.startswith("llama") or ("llama-server, none", clients) in rates else None
                ratio = spread([a / b for a, b in zip(rates[name, clients], plain)], 2) if plain else "–"
                first = ", ".join(f"{1000 * percentile(firsts[name, clients], share):.0f}" for share in (.5, .95))
                print(f"| {clients} | {name} | {spread(rates[name, clients])} | {ratio} | {first} |")
        if options.llama_server:
            for clients in numbers:
                best = max((statistics.median(rates[name, clients]), name) for name, _, _ in contenders if name.startswith("llama"))[1]
                pairs = [a / b for a, b in zip(rates["medusa serve", clients], rates[best, clients])]
                print(f"\n{clients} clients: medusa serve ÷ the best llama-server ({best}): {spread(pairs, 2)}")
        if alone:
            pairs = [a / b for a, b in zip(rates["medusa serve", 1], alone)]
            print(f"\n1 client: medusa serve ÷ `medusa generate`, prompts included: {spread(pairs, 2)}; generate has {spread(alone)} tokens/s")
        long_prompt_check(ours, {}, questions, 3)
        print("\nCommands:\n\n```")
        for command in {tuple(server.command) for _, server, _ in contenders}:
            print(" ".join(command))
        print("```")
    finally:
        for server in {id(server): server for _, server, _ in contenders}.values():
            server.end()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({f"{name}, {clients} clients": rate for (name, clients), rate in rates.items()}, indent=1))


if __name__ == "__main__":
    main()
