#!/usr/bin/env bash
# The main job on a real model: sets up, builds, then SmolLM2-135M-Instruct writes its own training text, Medusa heads
# are trained on it, their choice tree is calibrated for this machine, and plain and Medusa decoding run side by side.
# A second run does only what is missing; remove runs/demo to start over. Arguments are settings, e.g. train.epochs=1
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
tools/get_demo_model.sh >/dev/null
cmake --preset release >/dev/null
cmake --build --preset release --target medusa

settings=()
for setting in "$@"; do settings+=(--set "$setting"); done
medusa() { build/release/medusa "$1" --config configs/demo.yaml "${settings[@]}" "${@:2}"; }

medusa distill
medusa train
compare=(generate --compare --questions configs/demo_questions.jsonl)
if ! nvidia-smi >/dev/null 2>&1; then
  # On a CPU heads gain most in bfloat16, and the fastest text is that of the file's own 4-bit blocks, .0024 nats from
  # float32's (docs/benchmarks). A tree belongs to a dtype: what rows cost decides which drafts are worth trying.
  run=runs/demo
  for setting in "$@"; do case "$setting" in run=*) run=${setting#run=} ;; esac; done
  stored=(--dtype stored --set "generate.tree=$run/tree-stored.yaml")
  medusa calibrate "${stored[@]}"
  medusa "${compare[@]}" "${stored[@]}"
fi
medusa calibrate
medusa "${compare[@]}"
