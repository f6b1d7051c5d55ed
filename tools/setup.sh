#!/usr/bin/env bash
# Installs what the build needs: Debian packages, and LibTorch (the C++ side of the torch wheel) into .deps/.
# Run as root or with sudo at hand. Does only what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache pkg-config python3-venv clang-format
          libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libcli11-dev libboost1.81-dev libssl-dev
          libpcre2-dev libutf8proc-dev libhdf5-dev libedit-dev libgtest-dev
          libopenmpi-dev openmpi-bin)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: not root and no sudo; install these packages: ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The torch wheel is built against CUDA; without a GPU two small CUDA libraries are all that its CPU side loads. Every
# wheel is named with its SHA-256 (tools/dev/pin_wheels.py writes the lists): pip refuses any other.
venv=.deps/venv
[ -x "$venv/bin/pip" ] || /usr/bin/python3 -m venv "$venv"
wheels=tools/wheels-cpu.txt
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then wheels=tools/wheels-cuda.txt; fi
wanted=$(grep -o '^[a-z0-9.-]*==[^ ]*' "$wheels" | sort)
installed=$("$venv/bin/pip" list --disable-pip-version-check --format=freeze 2>/dev/null || true)
if [ -n "$(comm -23 <(echo "$wanted") <(echo "$installed" | sort))" ]; then
  echo "setup: installing LibTorch 2.11.0 and xgrammar into .deps/ (about 550 MB without a GPU)"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r "$wheels"
fi
echo "setup: done"
