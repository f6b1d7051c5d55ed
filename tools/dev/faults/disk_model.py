"""A disk that loses power: what it may hold afterwards, by the log that tests/faults/fault_shim.cpp wrote.

Bytes of a file are safe once it was flushed, names in a folder once that folder was. Of everything since then any part may be there: names
in any order, bytes dropped, or zero, or half of them. File systems that keep more (most do) leave one of these states, too.
"""

import collections
import dataclasses
import itertools
import os
import random

MOST_COMBINED = 6  # of so many pending changes of names all subsets are tried, of more a choice
Change = collections.namedtuple("Change", "entries")  # [(folder, name, node or None)]: all or none of it
DROPPED, KEPT, ZERO, TORN = "dropped", "kept", "zero", "torn"


@dataclasses.dataclass
class Node:
    """A file or folder: what the program sees, and what is safe."""

    is_folder: bool
    data: bytes = b""
    safe_data: bytes = b""
    names: dict = dataclasses.field(default_factory=dict)
    safe_names: dict = dataclasses.field(default_factory=dict)

    def data_after(self, fate):
        if self.data == self.safe_data or fate == KEPT:
            return self.data
        size, safe = len(self.data), len(self.safe_data)
        if fate == ZERO and size > safe:
            return self.safe_data + bytes(size - safe)
        if fate == TORN and size > safe:
            return self.data[: safe + (size - safe) // 2]
        return self.safe_data


class Disk:
    def __init__(self, folder):
        """Of a folder whose bytes are all safe."""
        self.root, self.prefix = Node(True), str(folder)
        self.by_inode, self.pending = {folder.stat().st_ino: self.root}, []
        for parent, folders, files in os.walk(folder):
            above = self.by_inode[os.stat(parent).st_ino]
            for name in folders + files:
                path = os.path.join(parent, name)
                inode = os.stat(path).st_ino
                node = self.by_inode.setdefault(inode, Node(name in folders))
                if name in files:
                    with open(path, "rb") as file:
                        node.data = node.safe_data = file.read()
                above.names[name] = above.safe_names[name] = node

    def find(self, path):
        """The folder above, the name in it, and what has that name."""
        node, parts = self.root, path[len(self.prefix) + 1 :].split("/")
        for part in parts[:-1]:
            node = node.names[part]
        return node, parts[-1], node.names.get(parts[-1])

    def change(self, *entries):
        for above, name, node in entries:
            above.names.pop(name, None) if node is None else above.names.__setitem__(name, node)
        self.pending.append(Change(entries))

    def apply(self, operation):
        """@param operation  a line of the log that did not fail."""
        kind, node = operation.kind, self.by_inode.get(operation.inode)
        if kind == "write":
            node.data = node.data[: operation.offset].ljust(operation.offset, b"\0") + operation.data + node.data[operation.offset + len(operation.data) :]
        elif kind == "truncate":
            node.data = node.data[: operation.offset].ljust(operation.offset, b"\0")
        elif kind == "empty":
            node.data = b""
        elif kind == "fsync":
            self.flush(node)
        else:
            self.rename(kind, operation)

    def rename(self, kind, operation):
        above, name, there = self.find(operation.path)
        if kind in ("create", "mkdir"):
            node = self.by_inode[operation.inode] = Node(kind == "mkdir")
            self.change((above, name, node))
        elif kind in ("unlink", "rmdir"):
            self.change((above, name, None))
        else:
            from_above, old, node = self.find(operation.second)
            if kind == "link":
                self.change((above, name, node))
            else:
                self.change((from_above, old, there if kind == "swap" else None), (above, name, node))

    def flush(self, node):
        node.safe_data = node.data
        if not node.is_folder:
            return
        kept = []
        for change in self.pending:
            if all(above is not node for above, _, _ in change.entries):
                kept.append(change)
                continue
            for above, name, there in change.entries:
                above.safe_names.pop(name, None) if there is None else above.safe_names.__setitem__(name, there)
        # What was changed in a folder that is gone for good is of no interest.
        reachable, found = [self.root, *(there for change in kept for _, _, there in change.entries if there)], set()
        while reachable:
            each = reachable.pop()
            if id(each) not in found:
                found.add(id(each))
                reachable += each.safe_names.values()
        self.pending = [change for change in kept if any(id(above) in found for above, _, _ in change.entries)]

    def subsets(self):
        count = len(self.pending)
        if count <= MOST_COMBINED:
            return itertools.product((False, True), repeat=count)
        every = range(count)
        chosen = {tuple(False for _ in every), tuple(True for _ in every)}
        for i in every:
            chosen |= {tuple(j < i for j in every), tuple(j >= i for j in every), tuple(j == i for j in every), tuple(j != i for j in every)}
        draw = random.Random(count)
        chosen |= {tuple(draw.random() < 0.5 for _ in every) for _ in range(16)}
        return sorted(chosen)

    def tree(self, taken, fate):
        names = {}
        for change, is_taken in zip(self.pending, taken):
            for above, name, node in change.entries if is_taken else ():
                names.setdefault(id(above), {})[name] = node
        out, folders = {}, [("", self.root)]
        while folders:
            prefix, folder = folders.pop()
            for name, node in {**folder.safe_names, **names.get(id(folder), {})}.items():
                if node is None:
                    continue
                out[prefix + name] = None if node.is_folder else node.data_after(fate)
                if node.is_folder:
                    folders.append((prefix + name + "/", node))
        return out

    def trees_after_power_cut(self):
        unsafe = any(node.data != node.safe_data for node in self.by_inode.values())
        for taken in self.subsets():
            for fate in (DROPPED, KEPT, ZERO, TORN) if unsafe else (KEPT,):
                yield self.tree(taken, fate)

    def tree_now(self):
        return self.tree([True] * len(self.pending), KEPT)


Operation = collections.namedtuple("Operation", "kind result inode path second offset data")


def read_log(log, kept_bytes=b""):
    """The operations that a log tells of, those that failed included."""
    operations = []
    for line in log.read_text().splitlines():
        kind, result, inode, path, second, offset, size, place = line.split("\t")
        data = kept_bytes[int(place) : int(place) + int(size)] if int(place) >= 0 else b""
        operations.append(Operation(kind, int(result), int(inode), path, second, int(offset), data))
    return operations
