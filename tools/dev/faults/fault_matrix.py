#!/usr/bin/env python3
"""Lets every write, flush and rename of the commands that make artifacts fail, kills them, cuts their power, and looks what is left.

    python3 tools/dev/faults/fault_matrix.py [--only 'part of a name'] [--max 40] [--kills 100] [--page FILE]

A command first runs without a fault under tests/faults/fault_shim.cpp, which writes down what it changes. Then it runs again for each of these
operations and each kind of fault (columns ENOSPC to killed), is killed at random times (column times), and what a power cut may leave after each
operation is made of the log (disk_model.py). A case is lost when

- an artifact is neither the old one nor the new one, or is gone,
- the same command, started again, does not end with the bytes of the run without a fault,
- the program crashes, says nothing of what to do, or calls it a success and leaves something else,
- it ended well and the power cut then takes something back.

States that are the same but for times and process numbers are continued once. Prints the table as Markdown and each lost case; the exit status
is 1 if there is one. Needs nothing but Python and the built program with its shim.
"""

import argparse
import collections
import concurrent.futures
import datetime
import itertools
import pathlib
import platform
import queue
import random
import re
import shutil
import sys
import tempfile
import threading
import time

import trees
from disk_model import Disk, read_log
from tiny_runs import Program, commands

ROOT = pathlib.Path(__file__).resolve().parents[2].parent
FAULTS = ("ENOSPC", "EIO", "short", "full", "kill")
COLUMNS = (*FAULTS, "times", "power cut")
MESSAGE = re.compile(r"medusa: .+; .+")
INTERNALS = re.compile(r"this is a bug|std::|c10::|terminate called")
TESTS_PAGE = "tests/README.md"
LOST_SHOWN = 12  # of each command and column


def kinds_for(operation):
    """The faults that an operation can have; a part of a write needs two bytes."""
    for kind in FAULTS:
        is_write = operation.kind == "write" and operation.result > 1
        if kind == "short" and not is_write:
            continue
        if kind == "full" and operation.kind in ("fsync", "unlink", "rmdir"):
            continue
        yield kind


def sampled(items, most):
    """At most so many of them, evenly."""
    items = list(items)
    return items if most <= 0 or len(items) <= most else [items[i * len(items) // most] for i in range(most)]


def representative(operations, most):
    """Numbers of the operations that are tried: of writes in a row to the same file at most so many, evenly; 0: all."""
    runs = itertools.groupby(range(len(operations)), lambda i: (operations[i].kind == "write" and operations[i].inode) or -i - 1)
    return [number for _, run in runs for number in sampled(run, most)]


class Row:
    """One command: what it does without a fault, and what became of it with one."""

    def __init__(self, command, program, work, pool, places):
        self.command, self.program, self.work, self.pool, self.places = command, program, work, pool, places
        self.counts, self.lost = collections.Counter(), collections.Counter()
        self.continued, self.lines, self.leftovers = {}, [], collections.Counter()
        self.lock = threading.Lock()
        self.template = work / "template"
        program.prepare(self.template, command)
        self.record()

    def record(self):
        """The run without a fault: its log, its end, and each state that an artifact may have."""
        folder, log, kept = self.work / "case", self.work / "log", self.work / "bytes"
        for path in (log, kept):
            path.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder)
        disk = Disk(folder)
        began = time.monotonic()
        status, said = self.program.run(folder, self.command.args, self.command.swaps, log=log, kept=kept)
        self.seconds = time.monotonic() - began
        if status != 0:
            raise SystemExit(f"{self.command.name}: exit status {status} without a fault: {said}")
        self.operations = read_log(log, kept.read_bytes())
        self.end = trees.read_tree(folder)
        self.wanted = trees.finished_digest(self.end)
        self.good, self.needed = collections.defaultdict(set), {}
        before = trees.units(trees.read_tree(self.template))
        for path, found in [*before.items(), *trees.units(self.end).items()]:
            self.good[path].add(found)
        self.needed, self.cut = set(before), {}
        for number, operation in enumerate(self.operations):
            if operation.result >= 0:
                disk.apply(operation)
            if operation.kind in ("rename", "swap"):
                path = operation.path[len(str(folder)) + 1 :]
                found = trees.units(disk.tree_now())
                if path in found:
                    self.good[path].add(found[path])
                if operation.kind == "rename":
                    self.needed.discard(operation.second[len(str(folder)) + 1 :])  # put away before it is removed
            is_last = number + 1 == len(self.operations)
            for tree in disk.trees_after_power_cut():
                self.cut.setdefault((trees.state_digest(tree), is_last), (number, tree))
        if trees.digest(disk.tree_now()) != trees.digest(self.end):
            raise SystemExit(f"{self.command.name}: the log does not tell all that was changed below {folder}")

    def unit_faults(self, tree):
        """Artifacts that are neither old nor new."""
        found, faults = trees.units(tree), []
        for path in self.needed - found.keys():
            if path + ".partial-old" not in tree:
                faults.append(f"{path} is gone or not finished")
        faults += [f"{path} is neither the old one nor the new one" for path, value in found.items() if value not in self.good[path]]
        return faults

    def continue_from(self, folder, tree):
        """Starts the command again where a fault left it, once for each such state."""
        key = trees.state_digest(tree)
        with self.lock:
            mine = key not in self.continued
            if mine:
                self.continued[key] = concurrent.futures.Future()
        if mine:
            try:
                self.continued[key].set_result(self.continue_in(folder, tree))
            except BaseException as error:
                self.continued[key].set_exception(error)
                raise
        return self.continued[key].result()

    def continue_in(self, folder, tree):
        status, said = self.program.run(folder, self.command.args, self.command.swaps)
        after = trees.read_tree(folder)
        for path in after:
            if trees.is_leftover(path):
                with self.lock:
                    self.leftovers[trees.plain_name(path)] += 1
        complete = trees.finished_digest(tree) == self.wanted
        if status != 0 and not (self.command.only_new and status == 2 and complete):
            return [f"exit status {status} when started again: {said.strip()[-300:]}"]
        if trees.finished_digest(after) != self.wanted:
            return ["started again it ends otherwise: " + self.difference(after)]
        return []

    def difference(self, tree):
        """The paths that a finished tree has otherwise than the run without a fault."""
        told = [{}, {}]
        for names, each in zip(told, (tree, self.end)):
            for path, data in each.items():
                if not trees.is_leftover(path) and not path.endswith(trees.LOCK):
                    names[path] = data is None or trees.plain_digest(path.rsplit("/", 1)[-1], data)
        return ", ".join(path for path in sorted(told[0].keys() | told[1].keys()) if told[0].get(path) != told[1].get(path))

    def count(self, column, what, faults):
        with self.lock:
            self.counts[column] += 1
            if not faults:
                return
            self.lost[column] += 1
            if self.lost[column] <= LOST_SHOWN:
                self.lines.append(f"{self.command.name} | {column} | {what} | {'; '.join(faults)}")
                print(self.lines[-1], flush=True)

    def with_place(self, work):
        place = self.places.get()
        try:
            return work(place)
        finally:
            self.places.put(place)

    def fault(self, number, kind):
        def case(place):
            folder = place / "case"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.template, folder)
            status, said = self.program.run(folder, self.command.args, self.command.swaps, at=number, kind=kind)
            tree = trees.read_tree(folder)
            faults = self.unit_faults(tree)
            if kind == "kill":
                faults += [] if status == -9 else [f"exit status {status}"]
            elif status not in (0, 2):
                faults.append(f"exit status {status}: {said.strip()[-300:]}")
            elif status == 2 and (not MESSAGE.search(said) or INTERNALS.search(said)):
                faults.append(f"says {said.strip()[-300:]!r}")
            elif status == 0 and trees.finished_digest(tree) != self.wanted:
                faults.append("calls it a success, but there differs " + self.difference(tree))
            faults += self.continue_from(folder, tree)
            operation = self.operations[number]
            path = pathlib.Path(operation.path).relative_to(self.work / "case")
            self.count(kind, f"operation {number}, {operation.kind} {path}", faults)

        self.with_place(case)

    def kill_after(self, seconds):
        def case(place):
            folder = place / "case"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.template, folder)
            self.program.run(folder, self.command.args, self.command.swaps, timeout=seconds)
            tree = trees.read_tree(folder)
            self.count("times", f"killed after {seconds:.3f} s", self.unit_faults(tree) + self.continue_from(folder, tree))

        self.with_place(case)

    def cut_power(self, number, tree, is_last):
        def case(place):
            folder = place / "case"
            trees.write_tree(folder, tree)
            faults = self.unit_faults(tree)
            if is_last and trees.finished_digest(tree) != self.wanted:
                faults.append("it had ended well; then there differs " + self.difference(tree))
            faults += self.continue_from(folder, tree)
            operation = self.operations[number]
            path = pathlib.Path(operation.path).relative_to(self.work / "case")
            self.count("power cut", f"after operation {number}, {operation.kind} {path}", faults)

        self.with_place(case)

    def run_all(self, options):
        """@param options  max, kills, seed, and which columns."""
        cases = [(number, kind) for number in representative(self.operations, options.writes) for kind in kinds_for(self.operations[number])]
        draw = random.Random(f"{options.seed} {self.command.name}")
        jobs = []
        for kind in set(FAULTS) & options.columns:
            jobs += [(self.fault, *case) for case in sampled((each for each in cases if each[1] == kind), options.max)]
        if "times" in options.columns:
            jobs += [(self.kill_after, draw.uniform(0.02, 1.1) * self.seconds) for _ in range(options.kills)]
        if "power cut" in options.columns:
            cut = ((number, tree, is_last) for (_, is_last), (number, tree) in self.cut.items())
            jobs += [(self.cut_power, *each) for each in sampled(cut, options.max and 3 * options.max)]
        for done in [self.pool.submit(*job) for job in jobs]:
            done.result()

    def cells(self):
        def cell(column):
            return f"{self.counts[column]}" if not self.lost[column] else f"{self.counts[column]}, **{self.lost[column]} lost**"

        return [self.command.name, str(len(self.operations)), *map(cell, COLUMNS), str(len(self.continued)), str(sum(self.lost.values()))]


def table(rows):
    heads = ["command", "operations", "ENOSPC", "EIO", "short write", "full disk", "killed", "killed, random times", "power cut", "continued", "lost"]
    lines = [heads, ["---"] * len(heads), *(row.cells() for row in rows)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def machine():
    names = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{len(names)} cores of {names[0] if names else platform.processor()}, Linux {platform.release().split('-')[0]}"


def page(rows, options, seconds, today):
    """Says how much was left out: options that bound the cases."""
    bounds = [f"Of {what} {most} are tried, evenly." for what, most in
              (("writes in a row to one file", options.writes), ("the operations for each kind of fault", options.max)) if most]
    return f"""# Faults, kills and power cuts

Generated by `tools/dev/faults/fault_matrix.py` on {today}, {machine()}, in {seconds / 60:.0f} minutes.
{' '.join([f'Seed {options.seed}.', *bounds])}
The first lines of the script say what a lost case is; [tests](../../{TESTS_PAGE}) say how it works.

{table(rows)}
An operation is a write, flush, rename, link, removal, or the making of a file or folder. The columns up to "killed" let each
operation fail once: with ENOSPC, with EIO, with half of a write, with a disk that is full from then on, with SIGKILL before
it. "Power cut" counts different states that the disk may be in after some operation. "Continued" counts different states from
which the same command was started again; it ended with the bytes of a run without a fault each time, but for lost cases.
"No swap": a file system without RENAME_EXCHANGE and without hard links.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--medusa", default=ROOT / "build/release/medusa", type=pathlib.Path)
    parser.add_argument("--shim", default=ROOT / "build/release/libfault_shim.so", type=pathlib.Path)
    parser.add_argument("--only", default="", help="only commands whose name holds this; a $ ends the name")
    parser.add_argument("--columns", default=",".join(COLUMNS), help="%(default)s")
    parser.add_argument("--max", default=0, type=int, help="operations of each kind of fault, evenly; 0: all")
    parser.add_argument("--writes", default=6, type=int, help="of writes in a row to one file so many, evenly; 0: all (%(default)s)")
    parser.add_argument("--kills", default=100, type=int, help="random times of each command (%(default)s)")
    parser.add_argument("--seed", default=1, type=int, help="of what is drawn (%(default)s)")
    parser.add_argument("--jobs", default=2, type=int, help="at the same time (%(default)s)")
    parser.add_argument("--page", type=pathlib.Path, help="write the page for docs/benchmarks")
    parser.add_argument("--list", action="store_true", help="print the operations of each command instead")
    options = parser.parse_args()
    options.columns = set(options.columns.split(","))
    chosen = [each for each in commands() if options.only in each.name + "$"]
    rows, began = [], time.monotonic()
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        places = queue.Queue()
        for number in range(options.jobs):
            places.put(pathlib.Path(work) / f"place{number}")
        program = Program(options.medusa.resolve(), options.shim.resolve())
        for number, command in enumerate(chosen):
            row = Row(command, program, pathlib.Path(work) / f"row{number}", pool, places)
            if options.list:
                print(f"{command.name}: {len(row.operations)} operations, {len(row.cut)} states after a power cut, {row.seconds:.2f} s")
                continue
            row.run_all(options)
            row.cut.clear()
            rows.append(row)
            print("| " + " | ".join(row.cells()) + " |", flush=True)
            for path, count in row.leftovers.items():
                print(f"{command.name}: {count} times left after all: {path}")
            shutil.rmtree(row.work)
    print("\n" + table(rows))
    lost = sum(sum(row.lost.values()) for row in rows)
    print(f"{lost} lost")
    if options.page:
        options.page.write_text(page(rows, options, time.monotonic() - began, datetime.date.today()))
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
