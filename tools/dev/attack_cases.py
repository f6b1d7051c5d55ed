"""Cases of tools/dev/attack.py, by kind: settings, options, paths, streams, limits and signals."""

import dataclasses
import itertools
import os
import re
import resource
import signal

from hostile_inputs import damaged_yaml, seeded

CONFIG = ["--config", "run.yaml"]
NEW_RUN = [*CONFIG, "--set", "run=runs/new", "--set", "train.data=[runs/tiny/dataset]"]
SHORT = [*CONFIG, "--prompt", "Once upon", "--set", "generate.max_new_tokens=4"]
RUN_YAML = """run: runs/tiny
seed: 3
backbone: {model: model.gguf, threads: 1, context: 256, chat_template: plain}
distill: {prompts: [prompts.jsonl], max_new_tokens: 24, batch: 4, shard_samples: 4}
train:
  epochs: 2
  keep_best: true
  batch_positions: 64
  warmup_steps: 2
  validation_fraction: 0.25
  heads: {num_heads: 2, input: hidden, output: shared}
calibrate: {top_k: 5, nodes: 6, context: 32, repeats: 3}
generate: {max_new_tokens: 16}
draft: {layers: 2, epochs: 1, batch_tokens: 200}
"""


@dataclasses.dataclass
class Case:
    """One start of the program."""

    name: str
    args: list
    prepare: object = None  # called with the folder before the start; may give company (attack_company.py)
    streams: str = "nof"  # stdin, stdout, stderr: n null, o file, f file that is judged, F /dev/full, b broken pipe, c closed
    limits: tuple = ()  # (resource, value)
    signal: tuple = ()  # (seconds, signal)
    endless: bool = False  # may run until it is ended
    writes: tuple = ("new",)  # what it may touch outside runs/
    codes: tuple = (0, 2)  # exit codes that are right


def spill(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.exists():
        path.unlink()
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))


def put(name, data):
    """Prepares a case by writing one file."""
    return lambda folder: spill(folder / name, data)


MEDUSA = ["generate", *SHORT, "--drafter", "medusa"]
VALUES = [
    "",
    "null",
    "-1",
    "0",
    "1",
    "0.5",
    "1e400",
    ".nan",
    ".inf",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "x",
    "''",
    "[]",
    "[1]",
    "[x]",
    "{}",
    "{a: 1}",
    "true",
    "0x10",
    "010",
    "*a",
    "[" * 3000,
    "\x1b[31m",
    b"\xff",
]
WORDS = [
    "",
    "-1",
    "0",
    "x",
    "nan",
    "1e400",
    "99999999999999999999",
    "1.5",
    "/dev/zero",
    "/dev/null",
    "outside",
    "outside/precious.txt",
    "model.gguf",
    "nowhere/a/b",
    "x" * 300,
    "p/" * 2100,
    "\x1b]0;x\x07",
    b"\xff\xfe",
    ",",
    "-",
    "--",
    "1/0",
    "256.1.1.1",
]
ENDLESS = re.compile(r"tokens|prompts|epochs|repeat|positions|samples|accumulate|context|every|port|host|sequences|waiting|name|serve")
DRAWN = [  # values of settings
    lambda draw: draw.randrange(-3, 20),
    lambda draw: draw.choice((1, -1)) * 2 ** draw.randrange(70) + draw.randrange(-1, 2),
    lambda draw: draw.choice((1, -1)) * 10 ** draw.uniform(-30, 30),
    lambda draw: [draw.randrange(-3, 5) for _ in range(draw.randrange(6))],
    lambda draw: draw.choice(("true", "false", "auto", "none", "medusa", "live", "bfloat16")),
    lambda draw: "".join(draw.choice("a0.-/{}[]:,#&*!|>'\"%@`~ \u00e9\u202e\x07") for _ in range(draw.randrange(1, 12))),
]
WRITERS = {  # how a command is told where to write
    "report": ["report", *CONFIG, "--set", "run={}"],
    "distill": ["distill", *CONFIG, "--set", "run={}"],
    "heads": ["train", *CONFIG, "--set", "generate.heads={}"],
    "tree": ["calibrate", *CONFIG, "--set", "generate.tree={}"],
    "store": ["build-store", *CONFIG, "--set", "generate.retrieval.store={}"],
    "bench": ["bench", *CONFIG, "--questions", "prompts.jsonl", "--limit", "1", "--out", "{}"],
    "profile": ["profile", *CONFIG, "--rows", "1", "--contexts", "8", "--repeat", "1", "--out", "{}"],
    "export": ["export", *CONFIG, "--format", "vllm", "--output", "{}"],
    "dataset export": ["dataset", "export", "{}", *CONFIG],
    "import": ["import", "heads-vllm", *CONFIG, "--set", "generate.heads={}"],
    "dataset import": ["dataset", "import", "text.jsonl", *CONFIG, "--set", "run={}"],
}
STAGES = {
    "distill": ["distill", *CONFIG, "--set", "run=runs/new", "--set", "distill.max_new_tokens=200"],
    "train": ["train", *NEW_RUN, "--set", "train.epochs=200"],
    "calibrate": ["calibrate", *CONFIG, "--set", "calibrate.repeats=2000"],
    "generate": ["generate", *CONFIG, "--prompt", "Once", "--set", "generate.max_new_tokens=250"],
    "bench": ["bench", *CONFIG, "--questions", "prompts.jsonl", "--repeat", "50", "--out", "runs/b"],
    "profile": ["profile", *CONFIG, "--repeat", "500", "--out", "runs/b"],
    "export": ["export", *CONFIG, "--format", "medusa-2", "--output", "new"],
    "serve": ["serve", *CONFIG, "--port", "0"],
    "questions": ["generate", *CONFIG, "--questions", "fifo"],
    "output": ["dataset", "export", "fifo", *CONFIG],
    "make-draft": ["make-draft", *CONFIG, "--fresh", "--set", "draft.epochs=500"],
}
QUICK = {
    "generate": MEDUSA,
    "json": [*MEDUSA, "--json"],
    "inspect": ["inspect", "runs/tiny"],
    "help": ["--help"],
    "completion": ["completion", "bash"],
    "report": ["report", *CONFIG],
    "train": ["train", *CONFIG, "--set", "generate.heads=runs/h"],
    "calibrate": ["calibrate", *CONFIG],
    "export": ["export", *CONFIG, "--format", "vllm", "--output", "new"],
    "dataset export": ["dataset", "export", "new", *CONFIG],
    "distill": ["distill", *CONFIG, "--set", "run=runs/new"],
    "error": ["inspect", "nowhere"],
}


def setting_cases(attack):
    section_commands = {
        "distill": ["distill", *CONFIG, "--set", "run=runs/new"],
        "train": ["train", *NEW_RUN],
        "calibrate": ["calibrate", *CONFIG],
        "draft": ["make-draft", *CONFIG, "--fresh"],
        "generate": MEDUSA,
    }
    keys = {}
    for command in ("distill", "train", "calibrate", "make-draft", "generate"):
        text = attack.medusa_in(attack.template, "help", command, "all").stdout.decode().split("Settings: of the run")[1]
        keys.update(dict.fromkeys(re.findall(r"^  ([a-z_.]+): ", text, re.M)))
    for key, value in itertools.product(keys, VALUES):
        if key != "run":
            setting = key.encode() + b"=" + value if isinstance(value, bytes) else f"{key}={value}"
            command = section_commands.get(key.split(".")[0], MEDUSA)
            drafter = (
                ["--drafter", key.split(".")[1]] if key.count(".") == 2 and command is MEDUSA and key.split(".")[1] != "medusa" else []
            )
            yield Case(f"--set {setting[:60]!r}", [*command, *drafter, "--set", setting], endless=bool(ENDLESS.search(key)))
    draw, commands = seeded("settings"), [["distill"], ["train"], ["calibrate"], ["make-draft"], ["generate", "--prompt", "Once"]]
    for number in range(100):
        sets = [["--set", f"{key}={draw.choice(DRAWN)(draw)}"] for key in draw.sample(list(keys), 2) if key != "run"]
        command = [*draw.choice(commands), *CONFIG, "--set", "run=runs/new", "--set", "train.data=[runs/tiny/dataset]"]
        yield Case(f"drawn {number}: {sets}", [*command, *itertools.chain(*sets)], endless=True)
    for name, text in damaged_yaml(RUN_YAML, "run", 150):
        yield Case(f"run.yaml: {name}", ["report", *CONFIG], put("run.yaml", text), writes=("run.yaml",))


def option_cases(attack):
    base = {
        "inspect": ["runs/tiny"],
        "doctor": ["runs/tiny/heads", "--backbone", "model.gguf", "--no-measuring"],
        "completion": ["bash"],
        "serve": [*CONFIG, "--port", "0"],
        **{
            command: args[1:]
            for command, args in [(args[0], args) for args in [*WRITERS.values(), *QUICK.values()]]
            if command not in ("inspect", "completion", "--help")
        },
    }
    for command, args in base.items():
        args = [arg.replace("{}", "new") for arg in args]
        options = re.findall(r"^  (--[a-z-]+)", attack.medusa_in(attack.template, "help", command, "all").stdout.decode(), re.M)
        for option, word in itertools.product(set(options) - {"--help", "--out", "--output"}, WORDS):
            is_output = option in ("--log", "--heads", "--tree", "--run") and "outside" not in str(word)
            named = ("new", os.fsdecode(word).split("/")[0]) if is_output else ("new",)
            yield Case(f"{command} {option} {word[:30]!r}", [command, *args, option, word], endless=True, writes=named)
        draw = seeded("options " + command)
        for number in range(20):  # words of the command in another order, doubled or left out
            mixed = [draw.choice([*args, *options, *WORDS[:6]]) for _ in range(draw.randrange(1, len(args) + 3))]
            yield Case(f"{command} mixed {number}: {mixed}", [command, *mixed], endless=True, writes=("new", *WORDS[1:6]))
        for more in (["extra"], ["--unknown"], [""], [b"\xff"], ["x" * 100000], ["--json=maybe"]):
            yield Case(f"{command} {more[0][:30]!r}", [command, *args, *more], endless=command == "serve")


def output_cases(_):
    link = lambda target: lambda folder: (folder / "t").symlink_to(target)
    places = {
        "/dev/null": None,
        "/dev/full": None,
        "/dev/null/x": None,
        "t": link("/dev/null"),
        "t/x": link("t"),
        "outside/precious.txt": None,
        "outside/precious.txt/x": None,
        "runs/" + "n" * 256: None,
        "p/" * 2500: None,
        "/proc/x": None,
        "/sys/x": None,
        b"runs/\xff\xfe": None,
        "runs/\x1b]0;x\x07": None,
        "model.gguf": None,
        "run.yaml": None,
        "runs/tiny/heads": None,
        "runs/tiny/dataset": None,
        "runs/tiny/tree.yaml": None,
        "runs/new/": None,
        "": None,
    }
    draw = seeded("outputs")
    parts = ["..", ".", "", "runs", "tiny", "heads", "new", "t", "outside", "precious.txt", "dataset", "DONE", " ", "\n", "é", "-x"]
    drawn = ("runs/" + "/".join(draw.choice(parts) for _ in range(draw.randrange(1, 5))) for _ in range(16))
    places.update(dict.fromkeys(place for place in drawn if os.path.normpath(place).startswith("runs/")))
    for (name, args), (place, prepare) in itertools.product(WRITERS.items(), places.items()):
        filled = [os.fsencode(arg).replace(b"{}", os.fsencode(place)) for arg in args]
        writes = (
            ("dataset", "report.html", ".medusa.lock", "bench.json", "bench.jsonl", "bench.html", "profile.json", "profile.html")
            if place == ""
            else ()
        )
        yield Case(f"{name} to {place[:40]!r}", filled, prepare, writes=writes)


def stream_cases(_):
    draw = seeded("streams")
    for (name, args), out, err in itertools.product(QUICK.items(), "oFbc", "fFbc"):
        yield Case(f"{name}, stdout {out}, stderr {err}", args, streams="n" + out + err, writes=("new", "runs"))  # what came before the loss stays
    for (name, args), (what, most) in itertools.product(
        QUICK.items(),
        [
            *((resource.RLIMIT_FSIZE, size) for size in (0, 1, 4096, 20000)),
            *((resource.RLIMIT_AS, size << 20) for size in (700, 900, 1200)),
            *((resource.RLIMIT_NOFILE, number) for number in (8, 12, 20)),
            *((resource.RLIMIT_FSIZE, draw.randrange(100000)) for _ in range(3)),
            *((resource.RLIMIT_AS, draw.randrange(600 << 20, 2000 << 20)) for _ in range(3)),
        ],
    ):
        yield Case(f"{name}, limit {what} of {most}", args, streams="nno", limits=((what, most),))


def signal_cases(_):
    draw = seeded("signals")
    for (name, args), number, _ in itertools.product(STAGES.items(), (signal.SIGTERM, signal.SIGINT), range(5)):
        seconds = round(draw.uniform(0.05, 1.5), 3)
        yield Case(
            f"{name}, signal {number} after {seconds} s",
            args,
            lambda folder: os.mkfifo(folder / "fifo"),
            signal=(seconds, number),
            writes=("new",),
        )


KINDS = {
    "settings": setting_cases,
    "options": option_cases,
    "outputs": output_cases,
    "streams": stream_cases,
    "signals": signal_cases,
}
