#include "runtime/placement.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cuda/cuda_llama.h"
#include "base/error.h"
#include "base/process.h"
#include "infer/device_check.h"

namespace medusa {
namespace {

bool has_cuda() {
  return at::detail::getCUDAHooks().hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0;
}

/// @param local_rank  as of place().
at::Device device_for(const ModelOptions& options, int64_t local_rank) {
  if (options.device == DeviceKind::Cpu || !has_cuda()) return at::kCPU;
  const at::Device gpu(at::kCUDA, static_cast<c10::DeviceIndex>(
                                      local_rank % at::detail::getCUDAHooks().deviceCount()));
  if (options.device == DeviceKind::Cuda) return gpu;
  const std::string finding =
      options.check_gpu ? options.check_gpu(gpu) : check_device(checked_gpu(gpu));
  if (finding.empty()) return gpu;
  if (options.note)
    options.note(fmt::format(
        "note: the CPU decodes, since the GPU failed its check: {}; --device cuda takes the GPU "
        "all the same, --device cpu leaves out this check",
        finding));
  return at::kCPU;
}

/// The ISAs that this CPU has, "auto | avx2 | plain".
std::string isas_here(bool quantized) {
  std::vector<std::string> names;
  for (const auto& [name, isa] : EnumNames<CpuIsa>::values)
    if (kernels_for(isa, quantized) != nullptr) names.emplace_back(name);
  return fmt::format("{}", fmt::join(names, " | "));
}

/// More threads than CPUs take turns, and at every barrier all wait for the last: with many of them
/// a step takes minutes.
int threads_of(const ModelOptions& options) {
  const auto cpus = static_cast<int64_t>(allowed_cpus().size());
  const int64_t threads = options.threads.value_or(cpus);
  if (threads > cpus)
    throw UserError(fmt::format(
        "backbone.threads is {}, found {} CPU{} that this process may use, expected at most as "
        "many threads; lower it, or leave it out for one on each",
        threads, cpus, cpus == 1 ? "" : "s"));
  return static_cast<int>(threads);
}

/// Starts so many threads at the same time and ends them again. LibTorch waits for ever for a
/// thread that the system refused, and OpenMP ends the program without a word of what to do.
/// @throws std::system_error  the system gives no more of them.
void expect_threads(int count) {
  struct End {
    std::promise<void> promise;
    ~End() { promise.set_value(); }
  };
  std::vector<std::jthread> threads;  // joined after the end was given
  End end;
  const std::shared_future<void> ended = end.promise.get_future().share();
  for (int i = 0; i < count; ++i) threads.emplace_back([ended] { ended.wait(); });
}

/// expect_threads() of what a model's passes start: a pool of LibTorch's, one of OpenMP's and our
/// own, of so many threads each. How many were found is the process's: LibTorch's and OpenMP's
/// pools never end, so that looking for theirs again would count them twice. Only what a model
/// wants beyond all before it is looked for.
///
/// Thread safety: yes.
void expect_pools(int threads) {
  static std::mutex guard;
  static int found = 0;
  const std::lock_guard lock(guard);
  const int wanted = 3 * threads;
  if (wanted <= found) return;
  expect_threads(wanted - found);
  found = wanted;
}

ExecutionOptions execution_options(const ModelOptions& options) {
  if (options.execution)
    return {.threads = options.execution->num_threads(),
            .isa = options.execution->isa(),
            .kernels = options.execution->kernels()};
  return {.threads = threads_of(options), .isa = options.cpu};
}

void check_isa(const Placement& placement) {
  const CpuIsa isa = placement.execution.isa;
  if (isa == CpuIsa::Auto) return;
  const std::string name = enum_name(isa);
  if (!placement.device.is_cpu())
    throw UserError(fmt::format(
        "backbone.cpu is '{}' and the device a GPU, expected a CPU for it; use --device "
        "cpu, or leave backbone.cpu out",
        name));
  if (placement.dtype == at::kFloat)
    throw UserError(fmt::format(
        "backbone.cpu is '{}' and the dtype float32, which LibTorch multiplies, expected "
        "bfloat16, int8 or stored; use --dtype bfloat16, or leave backbone.cpu out",
        name));
  const bool quantized = placement.blocks != QuantKind::None;
  if (kernels_for(isa, quantized) == nullptr)
    throw UserError(fmt::format(
        "backbone.cpu is '{}', found a CPU without it ({}), expected {}{}; use --set "
        "backbone.cpu=auto for the fastest of these",
        name, cpu_name(), isas_here(quantized), quantized ? " for weights in blocks" : ""));
}

}  // namespace

void ModelOptions::validate() const {
  if (execution && (threads || cpu != CpuIsa::Auto))
    throw UserError(fmt::format(
        "backbone.{} is given besides an execution context, which has its own, expected one of the "
        "two; leave it out, or make the context with it",
        threads ? "threads" : "cpu"));
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "CPU";
}

Placement place(const ModelOptions& options, int64_t local_rank) {
  check_config(options, "backbone");
  const ExecutionOptions execution = execution_options(options);
  expect_pools(execution.threads);
  if (options.device == DeviceKind::Cuda && !has_cuda())
    throw UserError(
        "backbone.device is 'cuda', found no usable GPU, expected one with its driver; use "
        "--device cpu or install LibTorch's CUDA libraries");
  const at::Device device = device_for(options, local_rank);
  const bool cuda = !device.is_cpu();
  Placement placement{device, at::kBFloat16, QuantKind::None, execution};
  if (options.dtype == DtypeKind::Float32) placement.dtype = at::kFloat;
  if (options.dtype == DtypeKind::Int8) placement.blocks = QuantKind::Int8;
  if (options.dtype == DtypeKind::Stored) placement.blocks = QuantKind::Stored;
  if (cuda && placement.blocks != QuantKind::None && !cuda_kernels().complete())
    throw UserError(
        "backbone.dtype is 'int8' or 'stored' and the device a GPU, found a build without our CUDA "
        "kernels, expected them for weights in blocks; build where nvcc is found, or use --dtype "
        "bfloat16 or --device cpu");
  check_isa(placement);
  return placement;
}

ExecutionContext execution_of(const ModelOptions& options, const Placement& placement) {
  return options.execution ? *options.execution : ExecutionContext(placement.execution);
}

at::ScalarType training_dtype(const ModelOptions& options, const Placement& placement) {
  const bool chosen = options.dtype == DtypeKind::Float32 || options.dtype == DtypeKind::Bfloat16;
  const bool multiplies_bf16_fast = has_amx_bf16() || dot_products_are_fast();
  return chosen || !placement.device.is_cpu() || multiplies_bf16_fast ? placement.dtype
                                                                      : at::kFloat;
}

}  // namespace medusa
