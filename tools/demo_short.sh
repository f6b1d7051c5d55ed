#!/usr/bin/env bash
# The demo's stages with little text, for a machine that only wants to see them work: a few minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf runs/demo_short
tools/demo.sh run=runs/demo_short distill.self_prompts=96 distill.max_answer_tokens=6000 distill.max_new_tokens=96 \
  distill.shard_samples=16 train.epochs=1 train.warmup_steps=5 calibrate.repeats=5 generate.max_new_tokens=48
