"""Writes tests/golden/tree_buffers.json: what the shipped choice trees become, from the definition, in plain Python.

    pip install pyyaml
    python3 tools/dev/make_tree_golden.py > tests/golden/tree_buffers.json

A tree is a list of paths of guess ranks. Node 0 is the root, then come the paths by length and ranks.
  depths[i]     the length of node i's path, which is its position after the root's
  parents[i]    the node of the path without its last rank; -1 for the root
  ranks[i]      the path's last rank; -1 for the root
  ancestors[i]  the nodes that node i may attend to, itself included, ascending
  leaves        for each path that no other extends, its nodes from the root down
  digest        of the sorted paths: tools/dev/check_published.py compares it with that of the tree as published
"""

import hashlib
import json
import pathlib

import yaml

TREES = pathlib.Path(__file__).resolve().parents[2] / "configs/trees"


def digest(paths):
    text = ";".join(",".join(str(rank) for rank in path) for path in sorted(tuple(path) for path in paths))
    return hashlib.sha256(text.encode()).hexdigest()


def buffers(paths):
    nodes = [()] + sorted((tuple(path) for path in paths), key=lambda path: (len(path), path))
    place = {path: i for i, path in enumerate(nodes)}
    line = {path: [place[path[:length]] for length in range(len(path) + 1)] for path in nodes}
    extended = {path[:-1] for path in nodes[1:]}
    return {"depths": [len(path) for path in nodes], "parents": [-1] + [place[path[:-1]] for path in nodes[1:]],
            "ranks": [-1] + [path[-1] for path in nodes[1:]], "ancestors": [line[path] for path in nodes],
            "leaves": [line[path] for path in nodes if path not in extended], "digest": digest(paths)}


def main():
    trees = {file.stem: buffers(yaml.safe_load(file.read_text())["nodes"]) for file in sorted(TREES.glob("*.yaml"))}
    print("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(tree)}" for name, tree in trees.items()) + "\n}")


if __name__ == "__main__":
    main()
