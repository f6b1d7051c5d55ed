// Where and in which dtype a model computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "backbone/execution_context.h"
#include "backbone/weights.h"
#include "runtime/model_options.h"

namespace medusa {

struct Placement {
  at::Device device;
  at::ScalarType dtype;  // of states, cache and embedding, and of weights that are not quantized
  QuantKind blocks = QuantKind::None;
  ExecutionOptions execution = {};  // threads and ISA on a CPU
};

/// @param local_rank  of several processes on this machine: they take the GPUs in turns.
/// @throws UserError  an option outside its range; a GPU is asked for and none is there, or
///                    quantized weights on a GPU; more threads than CPUs; an ISA of the CPU that it
///                    does not have, or beside a GPU or float32.
/// @throws std::system_error  the system gives no more threads.
Placement place(const ModelOptions& options, int64_t local_rank = 0);

/// The context that the options bring, else a new one.
ExecutionContext execution_of(const ModelOptions& options, const Placement& placement);

/// Gives what training computes in. Its GEMMs have a thousand rows: without AMX, float32 ones are
/// faster than bfloat16 ones (130 against 76 GFLOP/s a core, measured with LibTorch 2.11).
at::ScalarType training_dtype(const ModelOptions& options, const Placement& placement);

/// "Intel(R) Xeon(R) Processor"
std::string cpu_name();

}  // namespace medusa
