"""Our tokenizer beside `tokenizers` or `sentencepiece`: tokens per second of English on one core,
by turns.

Development only. Needs: pip install tokenizers sentencepiece
Build: cmake --build --preset release --target tokenizer_speed
Run:   taskset -c 0 python tools/dev/bench_tokenizer.py build/release/tokenizer_speed TEXTS MODEL…

TEXTS is a text file, or JSON Lines whose "turns" are joined; 1 MB of it is used. Each MODEL is a
tokenizer.json (beside it `tokenizers`) or a tokenizer.model (`sentencepiece`). The packages get the text whole and line by line; the quicker way counts.
Every side has five rounds, of which the quickest counts.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

ROUNDS = 5
SIZE = 1_000_000  # bytes


def read_text(path: pathlib.Path) -> str:
    if path.suffix != ".jsonl":
        return path.read_text()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return "\n".join(turn for line in lines for turn in line["turns"] if turn.isascii())


def their_encoder(model: pathlib.Path):
    if model.suffix == ".model":
        import sentencepiece
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        return "sentencepiece", lambda text: len(processor.encode(text))
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(model))
    return "tokenizers", lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def timed(encode, texts) -> tuple[int, float]:
    start = time.perf_counter()
    count = sum(encode(text) for text in texts)
    return count, time.perf_counter() - start


def main() -> None:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    text = read_text(source)[:SIZE]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "text.txt"
        file.write_text(text)
        for name in sys.argv[3:]:
            model = pathlib.Path(name)
            package, encode = their_encoder(model)
            ours, theirs = [], []
            for _ in range(ROUNDS):
                count, seconds = subprocess.run(
                    [program, name, str(file), "1"], check=True, capture_output=True,
                    text=True).stdout.split()
                ours.append(int(count) / float(seconds))
                for texts in ([text], text.splitlines(keepends=True)):
                    count, seconds = timed(encode, texts)
                    theirs.append(count / seconds)
            print(f"{name}: {max(ours) / 1e6:.2f} M tokens/s, {package} {max(theirs) / 1e6:.2f}")


if __name__ == "__main__":
    main()
