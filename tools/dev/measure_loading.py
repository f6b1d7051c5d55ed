"""Seconds and memory that loading a model takes: peak and final resident memory above what the
program had before.

Development only, Linux. Needs nothing besides Python.
Run:   python tools/dev/measure_loading.py build/release/medusa MODEL… [--dtypes float32 bfloat16 …]

The program's own progress lines say when the load begins and ends; memory is sampled every few
milliseconds in between. "final" is what is resident half a second after the load: the weights as
they are computed with, and little else.
"""

import argparse
import pathlib
import subprocess
import tempfile
import threading
import time


def resident(pid: int) -> int:
    """Bytes; 0 where the program has ended."""
    try:
        return 4096 * int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0


def measure(program: str, model: str, dtype: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "run.yaml"
        config.write_text(f"run: {folder}/run\nbackbone:\n  model: {pathlib.Path(model).absolute()}\n")
        process = subprocess.Popen(
            [program, "generate", "--config", str(config), "--drafter", "none", "--dtype", dtype,
             "--prompt", "Tell me a long story.", "--set", "generate.max_new_tokens=400"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        seen = {}

        def watch() -> None:
            for line in process.stderr:
                if line.startswith("load"):
                    kind = "end" if " in " in line else "begin"
                    seen.setdefault(kind, (time.monotonic(), resident(process.pid)))

        watcher = threading.Thread(target=watch)
        watcher.start()
        peak = final = 0
        while process.poll() is None:
            now = resident(process.pid)
            final = now or final
            if "begin" in seen:
                peak = max(peak, now)
            if "end" in seen and time.monotonic() > seen["end"][0] + 0.5:
                break
            time.sleep(0.004)
        process.kill()
        process.wait()
        watcher.join()
    before = seen["begin"][1]
    seconds = seen["end"][0] - seen["begin"][0]
    ratio = (peak - before) / (final - before)
    return (f"{pathlib.Path(model).name}, {dtype}: {seconds:.1f} s, peak {(peak - before) / 1e6:.0f} MB, "
            f"final {(final - before) / 1e6:.0f} MB, peak / final {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16", "int8", "stored"])
    settings = parser.parse_args()
    for model in settings.models:
        for dtype in settings.dtypes:
            print(measure(settings.program, model, dtype), flush=True)


if __name__ == "__main__":
    main()
