#!/usr/bin/env bash
# Sets up, builds and runs every test. The last line counts them and says why some were skipped: only for what this machine lacks.
# Arguments go to ctest, e.g. tools/test.sh -R Decoder
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
tools/get_demo_model.sh >/dev/null
cmake --preset release >/dev/null
cmake --build --preset release
results=$PWD/build/release/test_results  # of each suite's cases
rm -rf "$results" "$results.xml"
status=0
ctest --preset release -j "$(nproc)" --output-junit "$results.xml" "$@" || status=$?
if [ -f "$results.xml" ]; then /usr/bin/python3 tools/test_summary.py "$results.xml" "$results" || status=1; fi  # ctest -N runs none
exit "$status"
