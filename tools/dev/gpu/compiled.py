#!/usr/bin/env python3
"""What the CUDA compiler made of our kernels, without a GPU: the page docs/benchmarks/gpu-compiled.md.

    python3 tools/dev/gpu/compiled.py --page docs/benchmarks/gpu-compiled.md     # writes it
    python3 tools/dev/gpu/compiled.py --check docs/benchmarks/gpu-compiled.md    # .ci/run kernels

Reads the machine code of compute capability 9.0 out of the objects of build/kernels with cuobjdump and nvdisasm, and which blocks of what size a
step starts from the test NotedLaunches of cuda_tests. --check fails if a kernel keeps more in local memory than the page says (registers that
were spilled), if it needs a tenth more registers or instructions, if fewer of its blocks fit on a processor, if a step starts more kernels, or
if a kernel is not on the page, or is there no more. Another nvcc than the page's makes other code: then nothing is compared, and that is said.
tools/dev/gpu/wheels.txt has the two programs. Exit status: 0, as on the page or better; 1, something is worse; 2, it could not begin.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2].parent
HIDDEN = re.compile(r"\(anonymous namespace\)::|_GLOBAL__N__\w+?::|medusa::|^void |\(\w[^()]*\)$")
# A processor of compute capability 9.0 (CUDA C++ Programming Guide, table of technical specifications).
REGISTERS, WARPS, BLOCKS, SHARED, SHARED_OF_BLOCK = 65536, 64, 32, 228 * 1024, 1024
# An H200: bytes a second and processors as its data sheet says; four instructions a clock.
BYTES_PER_CLOCK = 4.8e12 / (132 * 1.98e9)
H200_PAGE = pathlib.Path("docs/benchmarks/2026-11-26-h200.md")
# The same GPU as measured there: bytes a second of a copy, and about what each kernel of a captured step costs besides.
COPY_BYTES_S, SECONDS_OF_KERNEL = 4.18e12, 3e-6
GOALS_MS = {"smollm2-135m": ".35", "llama-2-7b": "3.59", "llama-3-8b": "4.08"}  # of the large ones: 88 % of the copy


def name_of(symbol):
    """tiled_gemm_block<TiledGemm<4, 1, 4, 3>>."""
    name = HIDDEN.sub("", symbol.strip())
    return re.sub(r"\(DeviceRule\)", "rule ", HIDDEN.sub("", name)).replace("> >", ">>").strip()


def refuse(text):
    print(f"compiled.py: {text}", file=sys.stderr)
    sys.exit(2)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def demangled(symbols):
    names = subprocess.run(["c++filt"], input="\n".join(symbols), check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(zip(symbols, map(name_of, names)))


class Kernel:
    """One kernel's machine code."""

    def __init__(self, name, registers, shared, lines):
        self.name, self.registers, self.shared = name, registers, shared
        places, self.code = {}, []
        for line in lines:
            if label := re.match(r"(\.L_x_\d+):", line):
                places[label[1]] = len(self.code)
            elif code := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
                self.code.append(code[1])
        self.local = sum(bool(re.search(r"\b(STL|LDL)\b", each)) for each in self.code)
        self.loop = self._main_loop(places)
        self.products = sum("HMMA" in each for each in self.loop)  # of a warp
        self.group_products = sum("HGMMA" in each for each in self.loop)  # of a warpgroup, for all rows
        self.threads = self.dynamic = None

    def _main_loop(self, places):
        """The shortest of the loops that have the most tensor core products."""
        loops = []
        for end, code in enumerate(self.code):
            if (target := re.search(r"\bBRA\b.*\(?(\.L_x_\d+)", code)) and places.get(target[1], end + 1) <= end:
                loops.append([each for each in self.code[places[target[1]] : end + 1] if not each.startswith("NOP")])
        return max(loops, key=lambda loop: (sum("HMMA" in each or "HGMMA" in each for each in loop), -len(loop)), default=[])

    def kilobytes(self):
        """Of weights that a warp multiplies in a turn of the main loop; None: no GEMM."""
        bits = 4 if "Nibbles4" in self.name else 8 if "Int8" in self.name else 16
        if not (found := re.search(r"(TiledGemm<\d+, |SkinnyGemm<[^,]+, )(\d+)", self.name)):
            return None
        tiles = self.products / int(found[2]) + self.group_products  # of 16 x 16 elements
        return tiles * 256 * bits / 8 / 1024

    def blocks_of_processor(self):
        if self.threads is None:
            return None
        warps = -(-self.threads // 32)
        of_warp = -(-self.registers * 32 // 256) * 256
        return min(BLOCKS, WARPS // warps, REGISTERS // (of_warp * warps), SHARED // (self.shared + self.dynamic + SHARED_OF_BLOCK))

    def in_flight(self):
        """KB that the blocks of a processor have under way while they multiply."""
        found = re.search(r"TiledGemm<\d+, (\d+), (\d+), \d+, \d+>", self.name)
        if not found or self.threads is None:
            return None
        return (int(found[2]) - 1) * (128 + 8 * int(found[1])) * 128 // 1024 * self.blocks_of_processor()

    def row(self):
        kilobytes = self.kilobytes()
        each = len(self.loop) / kilobytes if kilobytes else None
        slots = each * BYTES_PER_CLOCK / 1024 / 4 if each and "TiledGemm" in self.name else None

        def text(value, pattern="{}"):
            return "" if value is None else pattern.format(value)

        return [f"`{self.name}`", text(self.registers), text(self.local), text(self.threads), text(self.shared + (self.dynamic or 0)),
                text(self.blocks_of_processor()), text(len(self.code)), text(each, "{:.0f}"), text(slots, "{:.0%}"), text(self.in_flight())]


def kernels_of(objects):
    found = []
    for each in objects:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cuobjdump", "-xelf", "sm_90a", str(each)], cwd=folder, check=True, capture_output=True)
            for cubin in sorted(pathlib.Path(folder).glob("*.cubin")):
                usage = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:\d+ SHARED:(\d+)", run("cuobjdump", "-res-usage", str(cubin)))
                names = demangled([symbol for symbol, _, _ in usage])
                parts = re.split(r"\.section\s+\.text\.([^,]+),", run("nvdisasm", "-c", str(cubin)))
                code = dict(zip(parts[1::2], parts[2::2]))
                # Of the shared memory of most kernels the first KB is the system's own, which occupancy counts apart.
                found += [Kernel(names[symbol], int(registers), max(0, int(shared) - SHARED_OF_BLOCK), code[symbol].splitlines())
                          for symbol, registers, shared in usage]
    return sorted(found, key=lambda kernel: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", kernel.name)])


def noted_steps(tests):
    """[{shape, nodes, layers, of a layer and of all with one layer: kernels, bytes of weights; launches}], each kernel by its name."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        run(str(tests), "--gtest_filter=NotedLaunches.OfSteps*", f"--gtest_output=json:{file.name}")
        case = json.load(open(file.name, encoding="utf-8"))["testsuites"][0]["testsuite"][0]
    symbols = dict(re.findall(r"^([0-9a-f]+) \w (.+)$", run("nm", "-C", str(tests)), re.MULTILINE))
    names = {int(address, 16): name_of(name) for address, name in symbols.items()}
    steps = json.loads(case["steps"])
    for launch in (each for step in steps for each in step["launches"]):
        launch["kernel"] = names[launch["kernel"]]
    return steps


def step_rows(steps):
    """Of each shape a line: kernels of a layer, then of a whole step for each size of tree."""
    for shape in dict.fromkeys(step["shape"] for step in steps):
        own = [step for step in steps if step["shape"] == shape]
        layer = own[0]["kernels_of_a_layer"]
        yield [shape, str(layer), *(str(len(step["launches"]) - layer) for step in own)]


def estimated_ms(step):
    more = step["layers"] - 1
    kernels = len(step["launches"]) + more * step["kernels_of_a_layer"]
    return 1e3 * ((step["bytes"] + more * step["bytes_of_a_layer"]) / COPY_BYTES_S + kernels * SECONDS_OF_KERNEL)


def estimate_rows(steps):
    for shape in dict.fromkeys(step["shape"] for step in steps):
        ms = {step["nodes"]: estimated_ms(step) for step in steps if step["shape"] == shape}
        yield [f"{shape}, ms", f"{ms[1]:.2f}", f"{ms[16]:.2f}", GOALS_MS.get(shape, "")]


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


KERNEL_HEAD = ["kernel", "registers", "local", "threads", "shared", "blocks", "code", "per KB", "slots", "in flight"]


def page(kernels, steps, nvcc):
    nodes = list(dict.fromkeys(step["nodes"] for step in steps))
    return f"""# CUDA kernels as compiled

Machine code of compute capability 9.0, {nvcc}, and what steps start. No GPU has a part in it. Written by
`tools/dev/gpu/compiled.py --page`; `.ci/run kernels` compares.

## Kernels of a step

One sequence behind 2,048 tokens, root heads, typical acceptance (a tree of 1: plain decoding, greedy). The layer's kernels
are started by each layer, the others once a step; those that heads start grow with the depth of the tree.

{table(["model", "of a layer", *(f"others, {n} node{'s' if n > 1 else ''}" for n in nodes)], step_rows(steps))}

## What that comes to

Weights at the {COPY_BYTES_S / 1e12:.2f} TB/s at which [an H200]({H200_PAGE.name}) copies, and {SECONDS_OF_KERNEL * 1e6:.0f} µs for each kernel. What rows and context cost is
left out. For the kernels that were measured there the same sum gives 4.05 ms for a plain step of the 7B model, where 4.20
were measured, and .90 for SmolLM2, where .81 were.

{table(["model", "plain", "16 nodes", "goal, plain"], estimate_rows(steps))}

## Each kernel

- `local`: instructions that read or write local memory: registers that were spilled. 0 is wanted.
- `shared`: bytes of a block. `blocks`: how many fit on a processor at once by registers, threads and shared memory.
- `code`: instructions. `per KB`: those of the main loop for each KB of weights that a warp multiplies. `slots`: the
  share of all issue slots that they take while an H200 reads weights at the full 4.8 TB/s.
- `in flight`: KB of the blocks of a processor that are under way at any time.

Kernels without `threads` are for sizes and weights that these three models do not have.

{table(KERNEL_HEAD, (kernel.row() for kernel in kernels))}
"""


def cells(text):
    """The page's lines: {first cell: the others}."""
    rows = (line[1:-1].split("|") for line in text.splitlines() if line.startswith("|"))
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def number(cell):
    return float(cell.rstrip("%")) if cell else 0.0


def worse(kept, now):
    """What is worse than on the page, a line each."""
    yield from (f"{name}: on the page, and no kernel" for name in kept if name not in now)
    for name, row in now.items():
        if name in ("---", "kernel", "model"):
            continue
        if name not in kept:
            yield f"{name}: not on the page"
            continue
        if not name.startswith("`"):
            if any(number(new) > number(old) for old, new in zip(kept[name], row)):
                yield f"{name}: {' '.join(row)}, the page says {' '.join(kept[name])}"
            continue
        old, new = (dict(zip(KERNEL_HEAD[1:], each)) for each in (kept[name], row))
        if number(new["local"]) > number(old["local"]):
            yield f"{name}: {new['local']} instructions of local memory, the page says {old['local'] or 0}"
        if number(new["blocks"]) < number(old["blocks"]):
            yield f"{name}: {new['blocks']} blocks fit on a processor, the page says {old['blocks']}"
        for column in ("registers", "code", "per KB"):
            if number(new[column]) > 1.1 * number(old[column]):
                yield f"{name}: {column} {new[column]}, the page says {old[column] or 0}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/kernels", type=pathlib.Path, help="has the objects (%(default)s)")
    parser.add_argument("--tests", default=ROOT / "build/release/cuda_tests", type=pathlib.Path, help="%(default)s")
    parser.add_argument("--page", type=pathlib.Path, help="write it")
    parser.add_argument("--check", type=pathlib.Path, help="compare with it")
    options = parser.parse_args()
    objects = sorted(options.build.rglob("*_kernels.cu.o"))
    if not objects:
        refuse(f"{options.build}: found no *_kernels.cu.o, expected compiled kernels; run .ci/run kernels")
    if not options.tests.is_file():
        refuse(f"{options.tests}: not found, expected the tests of the kernels; run ninja -C build/release cuda_tests")
    for program in ("cuobjdump", "nvdisasm", "c++filt", "nm", "nvcc"):
        if shutil.which(program) is None:
            refuse(f"found no {program} in PATH, expected it; .ci/run kernels installs tools/dev/gpu/wheels.txt, the CUDA toolkit has the others")
    if options.check and not options.check.is_file():
        refuse(f"--check {options.check}: not found, expected a page; make one with --page")
    nvcc = "nvcc " + re.search(r"release ([0-9.]+)", run("nvcc", "--version"))[1]
    kernels, steps = kernels_of(objects), noted_steps(options.tests)
    launches = {each["kernel"]: each for step in steps for each in step["launches"]}
    for kernel in kernels:
        if launch := launches.pop(kernel.name, None):
            kernel.threads, kernel.dynamic = launch["threads"], launch["shared_bytes"]
    if launches:
        refuse(f"{options.build}: found no machine code of {', '.join(launches)}, expected all that steps start; build kernels and tests of one source")
    text = page(kernels, steps, nvcc)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
    if options.check:
        kept = options.check.read_text(encoding="utf-8")
        if f", {nvcc}," not in kept:
            print(f"not compared: {options.check.name} was made with another compiler than {nvcc}")
            return
        lines = list(worse(cells(kept), cells(text)))
        print("\n".join(lines) if lines else f"{len(kernels)} kernels are as on {options.check.name} or better")
        sys.exit(bool(lines))


if __name__ == "__main__":
    main()
