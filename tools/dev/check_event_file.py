"""Opens a training's event files with the package `tensorboard` and compares every curve with metrics.jsonl.

Usage: check_event_file.py RUN_FOLDER        (pip install tensorboard)
"""

import json
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def curves_of(metrics):
    """Tag -> [(step, number)], as metrics.jsonl says them."""
    curves = {}
    for line in metrics.read_text().splitlines():
        report = json.loads(line)
        for name, value in report.items():
            if name in ("kind", "step"):
                continue
            tag = f"{report['kind']}/{name}"
            numbers = {f"{tag}/head_{k}": v for k, v in enumerate(value)} if isinstance(value, list) else {tag: value}
            for each, number in numbers.items():
                curves.setdefault(each, []).append((report["step"], number))
    return curves


def check(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    expected = curves_of(folder / "metrics.jsonl")
    found = {}
    for tag in accumulator.Tags()["scalars"]:
        found[tag] = [(event.step, event.value) for event in accumulator.Scalars(tag)]
    assert set(found) == set(expected), set(found) ^ set(expected)
    points = 0
    for tag, curve in expected.items():
        assert len(found[tag]) == len(curve), tag
        for (step, number), (other_step, other) in zip(curve, found[tag]):
            assert step == other_step and abs(number - other) <= 1e-6 * max(1, abs(number)), (tag, step, number, other)
            points += 1
    print(f"{folder}: {len(expected)} curves, {points} points, all equal")


if __name__ == "__main__":
    folders = sorted(path.parent for path in pathlib.Path(sys.argv[1]).rglob("events.out.tfevents.*"))
    assert folders, "no event file"
    for each in folders:
        check(each)
