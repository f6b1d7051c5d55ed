"""What lies in a run's folder, told so that two runs of the same settings compare equal.

A tree is {path: bytes}, None for a folder. Times, process numbers and what depends on how fast the machine was are taken out.
"""

import functools
import hashlib
import json
import pathlib
import re
import shutil

PART = re.compile(r"\.part-\d+(-\d+)?$")  # base/write_file.cpp
UNFINISHED = re.compile(r"\.(partial(-old)?|merging)$")  # base/replace_folder.cpp, data/dataset/dataset_merge.cpp
MEASURED = ("elapsed_s", "positions_per_s", "memory_bytes")  # of training's reports
APPENDED = ("metrics.jsonl", "events.out.tfevents.medusa")
LOCK = ".medusa.lock"


def read_tree(folder):
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in sorted(folder.rglob("*"))}


def write_tree(folder, tree):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sorted(tree):
        if tree[path] is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(tree[path])


def is_leftover(path):
    """Whether it is what a writer that was broken off leaves, or a part of that."""
    return any(PART.search(part) or UNFINISHED.search(part) for part in path.split("/"))


def plain_name(path):
    return "/".join(PART.sub(".part-PID", part) for part in path.split("/"))


def plain_metrics(data):
    lines = []
    for line in data.split(b"\n"):
        try:
            report = json.loads(line)
            lines.append(json.dumps({key: value for key, value in report.items() if key not in MEASURED}).encode())
        except ValueError:
            lines.append(line)
    return b"\n".join(lines)


def plain_events(data):
    """Without the checksums, the time of each event and the measured scalars."""
    out, at = b"", 0
    while at + 16 <= len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        if size > len(data) - at - 16:
            break
        event = bytearray(data[at + 12 : at + 12 + size])
        event[1:9] = bytes(8)
        for name in MEASURED:
            for found in re.finditer(f"/{name}\x15".encode(), bytes(event)):
                event[found.end() : found.end() + 4] = bytes(4)
        out += bytes(event)
        at += 16 + size
    return out + data[at:]


@functools.lru_cache(maxsize=None)
def plain_digest(name, data):
    """A digest of a file's bytes without what differs between two runs."""
    if name == "metrics.jsonl":
        data = plain_metrics(data)
    elif name.startswith("events."):
        data = plain_events(data)
    elif name == LOCK:
        data = b""
    elif name.endswith(".html") and data.rstrip().endswith(b"</html>"):
        data = b"a whole page"
    elif name.endswith(".yaml"):
        data = re.sub(rb"(?m)^  (step_ms|rows_ms|drafting_ms): .*$", rb"  \1", data)
    return hashlib.sha256(data).hexdigest()


def digest(tree, skip=lambda path: False):
    entries = [(plain_name(path), data is None or plain_digest(path.rsplit("/", 1)[-1], data)) for path, data in tree.items() if not skip(path)]
    return hashlib.sha256(repr(sorted(entries)).encode()).hexdigest()


def finished_digest(tree):
    """Of what a command is asked for: without leftovers and lock."""
    return digest(tree, lambda path: is_leftover(path) or path.endswith(LOCK))


def state_digest(tree):
    """Of what the next command may look at: of unfinished files only whether they are empty, but for folders that were finished."""
    seen = {}
    for path, data in tree.items():
        parts = path.split("/")
        unfinished = next((i for i, part in enumerate(parts) if UNFINISHED.search(part)), None)
        is_whole = unfinished is not None and "/".join([*parts[: unfinished + 1], "DONE"]) in tree
        if data and (PART.search(parts[-1]) or (unfinished is not None and not is_whole)):
            data = b"some bytes"
        seen[path] = data
    return digest(seen)


def units(tree):
    """What is complete or absent: {path of a folder with DONE, or of a file outside of such: digest}."""
    found, inside = {}, set()
    for path, data in tree.items():
        if data is None and path + "/DONE" in tree and not is_leftover(path):
            inside.add(path)
            found[path] = digest({each: tree[each] for each in tree if each.startswith(path + "/")})
    for path, data in tree.items():
        name = path.rsplit("/", 1)[-1]
        is_own = not is_leftover(path) and name != LOCK and name not in APPENDED
        if data is not None and is_own and not any(path.startswith(folder + "/") for folder in inside):
            found[path] = plain_digest(name, data)
    return found
