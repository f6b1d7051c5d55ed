#!/usr/bin/env python3
"""Writes tools/wheels-cpu.txt and tools/wheels-cuda.txt: every wheel that tools/setup.sh installs, with its SHA-256; and
tools/dev/clients/wheels.txt, tools/dev/clients/wheels-web.txt and tools/dev/gpu/wheels.txt, the same for
tools/dev/check_clients.sh, tools/dev/web/check_web.sh and tools/dev/gpu/compiled.py.

    .deps/venv/bin/python tools/dev/pin_wheels.py [setup | clients | web | gpu]

Asks pip what `torch` (the clients) needs on this Python, then for the wheels of the same versions on the other Pythons
below. Run it when one of the versions changes, and read the difference before committing it.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

TORCH = "torch==2.11.0"
# The grammar library and the library through which it is called; what else they name is for Python.
GRAMMAR = ["xgrammar==0.2.8", "apache-tvm-ffi==0.1.15.post2"]
# Clients of servers, and what makes a model for them.
CLIENTS = ["openai==3.57.0", "anthropic==2.13.0", "llm==0.36", "langchain-openai==1.7.4", "llama-benchy==0.4.0",
           "prometheus-client==0.26.0", "gguf==0.19.0", "jsonschema==4.26.0"]
WEB = ["playwright==1.56.0"]  # drives a browser
GPU = ["nvidia-cuda-cuobjdump==13.5.37", "nvidia-cuda-nvdisasm==13.5.37"]  # read machine code
PYTHONS = ("3.11", "3.12", "3.13")
# Without a GPU these two small libraries are all that LibTorch's CPU side loads.
CPU_ONLY = {"torch", "nvidia-cuda-runtime", "nvidia-cuda-cupti", "xgrammar", "apache-tvm-ffi"}
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(5, 29)] + [
    "manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64"]


def resolve(arguments):
    """What pip would install: [(name, version, sha256)]."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run",
                        "--ignore-installed", "--report", report.name, *arguments], check=True)
        found = json.load(open(report.name, encoding="utf-8"))["install"]
    return [(each["metadata"]["name"].lower().replace("_", "-"), each["metadata"]["version"],
             each["download_info"]["archive_info"]["hashes"]["sha256"]) for each in found]


def with_all_pythons(wanted):
    """The wheels that resolve() found, for all Pythons: {(name, version): {sha256}}."""
    hashes = {(name, version): {digest} for name, version, digest in wanted}
    pins = [f"{name}=={version}" for name, version in hashes]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    for python in PYTHONS:
        for name, version, digest in resolve(["--no-deps", "--only-binary=:all:", "--target", "unused",
                                              "--python-version", python, *platforms, *pins]):
            hashes[name, version].add(digest)
    return hashes


def write(file, hashes):
    lines = ["# Made by tools/dev/pin_wheels.py for Python " + ", ".join(PYTHONS) + " on x86-64 Linux."]
    for (name, version), digests in sorted(hashes.items()):
        lines.append(" \\\n    ".join([f"{name}=={version}"] + [f"--hash=sha256:{each}" for each in sorted(digests)]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    tools = pathlib.Path(__file__).resolve().parent.parent
    asked = sys.argv[1:] or ["setup", "clients", "web", "gpu"]
    if "setup" in asked:
        hashes = with_all_pythons(resolve([TORCH]) + resolve(["--no-deps", *GRAMMAR]))
        write(tools / "wheels-cuda.txt", hashes)
        write(tools / "wheels-cpu.txt", {each: found for each, found in hashes.items() if each[0] in CPU_ONLY})
    if "clients" in asked:
        write(tools / "dev/clients/wheels.txt", with_all_pythons(resolve(CLIENTS)))
    if "web" in asked:
        write(tools / "dev/clients/wheels-web.txt", with_all_pythons(resolve(WEB)))
    if "gpu" in asked:
        write(tools / "dev/gpu/wheels.txt", with_all_pythons(resolve(["--no-deps", *GPU])))


if __name__ == "__main__":
    main()
