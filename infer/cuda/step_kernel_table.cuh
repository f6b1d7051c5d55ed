// The step's kernels as a table: included by step_kernels.cu and, emulated, by tests.
#pragma once

#include "infer/cuda/step_kernels.h"
#include "infer/cuda/top_k.cuh"
#include "infer/cuda/tree_rows.cuh"
#include "infer/cuda/verify_rows.cuh"
#include "infer/cuda/walk.cuh"

namespace medusa {
namespace {

constexpr StepKernels step_kernel_table(const char* name) {
  return {name, verify_rows, walk, advance, top_k, place_rows};
}

}  // namespace
}  // namespace medusa
