#!/usr/bin/env bash
# Sets up, builds and runs every test. Arguments go to ctest, e.g. tools/test.sh -R Decoder
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release
ctest --preset release -j "$(nproc)" "$@"
