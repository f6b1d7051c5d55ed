#include "tools/session.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <future>
#include <thread>
#include <vector>

#include "backbone/cpu/cpu_features.h"
#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cuda/cuda_llama.h"
#include "backbone/files/load_weights.h"
#include "base/error.h"
#include "base/output.h"
#include "base/process.h"
#include "tools/chat_choice.h"
#include "tools/checked_gpu.h"

namespace medusa {
namespace {

constexpr int64_t kDefaultContext = 2048;  // tokens; a cache for more is asked for, not taken

bool has_cuda() {
  return at::detail::getCUDAHooks().hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0;
}

/// @param local_rank  as of place().
at::Device device_for(DeviceKind kind, int64_t local_rank) {
  if (kind == DeviceKind::Cpu || !has_cuda()) return at::kCPU;
  const at::Device gpu(at::kCUDA, static_cast<c10::DeviceIndex>(
                                      local_rank % at::detail::getCUDAHooks().deviceCount()));
  return kind == DeviceKind::Cuda || may_take_gpu(gpu) ? gpu : at::Device(at::kCPU);
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "CPU";
}

/// The ISAs that this CPU has, "auto | avx2 | plain".
std::string isas_here(bool in_blocks) {
  std::vector<std::string> names;
  for (const auto& [name, isa] : EnumNames<CpuIsa>::values)
    if (kernels_for(isa, in_blocks) != nullptr) names.emplace_back(name);
  return fmt::format("{}", fmt::join(names, " | "));
}

/// More threads than CPUs take turns, and at every barrier all wait for the last: with many of them
/// a step takes minutes.
int threads_of(const BackboneSection& config) {
  const auto cpus = static_cast<int64_t>(allowed_cpus().size());
  const int64_t threads = config.threads.value_or(cpus);
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

void check_isa(const BackboneSection& config, const Placement& placement) {
  if (config.cpu == CpuIsa::Auto) return;
  const std::string name = enum_name(config.cpu);
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
  const bool in_blocks = placement.blocks != BlockKind::None;
  if (kernels_for(config.cpu, in_blocks) == nullptr)
    throw UserError(fmt::format(
        "backbone.cpu is '{}', found a CPU without it ({}), expected {}{}; use --set "
        "backbone.cpu=auto for the fastest of these",
        name, cpu_name(), isas_here(in_blocks), in_blocks ? " for weights in blocks" : ""));
}

/// An ISA that was asked for by name computes, or the user hears of it.
void expect_isa(const BackboneSection& config, const Llama& llama) {
  if (config.cpu == CpuIsa::Auto || llama.uses_pool()) return;
  throw UserError(fmt::format(
      "backbone.cpu is '{}', found a model with states of {} and heads of {} numbers, expected "
      "multiples of 32, as only these run on our kernels; leave backbone.cpu out for LibTorch's",
      enum_name(config.cpu), llama.config().hidden_size, llama.config().head_size));
}

}  // namespace

Placement place(const BackboneSection& config, int64_t local_rank) {
  const ExecutionOptions execution{.threads = threads_of(config), .isa = config.cpu};
  // For a pool of LibTorch's, one of OpenMP's and our own. Once: the pools stay, and would count.
  [[maybe_unused]] static const bool given = (expect_threads(3 * execution.threads), true);
  at::set_num_threads(execution.threads);
  if (config.device == DeviceKind::Cuda && !has_cuda())
    throw UserError(
        "backbone.device is 'cuda', found no usable GPU, expected one with its driver; use "
        "--device cpu or install LibTorch's CUDA libraries");
  const at::Device device = device_for(config.device, local_rank);
  const bool cuda = !device.is_cpu();
  Placement placement{device, at::kBFloat16, BlockKind::None, execution};
  if (config.dtype == DtypeKind::Float32) placement.dtype = at::kFloat;
  if (config.dtype == DtypeKind::Int8) placement.blocks = BlockKind::Int8;
  if (config.dtype == DtypeKind::Stored) placement.blocks = BlockKind::Stored;
  if (cuda && placement.blocks != BlockKind::None && !cuda_kernels().complete())
    throw UserError(
        "backbone.dtype is 'int8' or 'stored' and the device a GPU, found a build without our CUDA "
        "kernels, expected them for weights in blocks; build where nvcc is found, or use --dtype "
        "bfloat16 or --device cpu");
  check_isa(config, placement);
  return placement;
}

at::ScalarType training_dtype(const BackboneSection& config, const Placement& placement) {
  const bool chosen = config.dtype == DtypeKind::Float32 || config.dtype == DtypeKind::Bfloat16;
  const bool multiplies_bf16_fast = has_amx_bf16() || dot_products_are_fast();
  return chosen || !placement.device.is_cpu() || multiplies_bf16_fast ? placement.dtype
                                                                      : at::kFloat;
}

std::vector<TokenId> Session::encode(const std::vector<ChatMessage>& messages) const {
  return chat.encode(*tokenizer, messages);
}

/// Our kernels have threads of their own. LibTorch's would go on spinning for a while after each
/// parallel op and take the cores away from them; between passes there is no work for LibTorch's.
void leave_cores_to_our_pool(const Llama& llama) {
  if (llama.uses_pool()) at::set_num_threads(1);
}

Session open_session(const BackboneSection& config) {
  const Placement placement = place(config);
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(config.model);
  ChatTemplate chat = open_chat_template(config, *tokenizer);
  Session session{std::move(tokenizer), std::move(chat), nullptr, {}, 0};
  if (placement.blocks == BlockKind::Stored && !stores_blocks(config.model))
    print_note(
        "note: not all matrices of {} are stored in blocks; of the others blocks of 8 bits "
        "are made, as --dtype int8 does\n",
        config.model);
  {
    WeightsReader reader(config.model, placement.dtype, placement.device, placement.blocks);
    session.llama = std::make_unique<Llama>(reader, ExecutionContext(placement.execution));
  }
  expect_isa(config, *session.llama);

  leave_cores_to_our_pool(*session.llama);

  const ModelConfig& model = session.llama->config();
  if (session.tokenizer->vocab_size() > model.vocab_size)
    throw UserError(
        fmt::format("{}: the tokenizer has {} tokens, the model {}; use the model's own tokenizer",
                    config.model, session.tokenizer->vocab_size(), model.vocab_size));
  session.eos = model.eos;
  if (const auto end = session.tokenizer->eos()) session.eos.push_back(*end);
  if (const auto turn = session.tokenizer->find(session.chat.end_of_turn()))
    session.eos.push_back(*turn);
  std::sort(session.eos.begin(), session.eos.end());
  session.eos.erase(std::unique(session.eos.begin(), session.eos.end()), session.eos.end());
  session.context = config.context.value_or(std::min(kDefaultContext, model.context));
  if (session.context > model.context)
    throw UserError(
        fmt::format("backbone.context is {}, the model was trained for {}; set it to at most that",
                    session.context, model.context));
  return session;
}

int num_threads(const Llama& llama) {
  return llama.uses_pool() ? llama.execution().num_threads() : at::get_num_threads();
}

BackboneTarget open_target(const BackboneSection& config, const Session& session,
                           int32_t num_sequences, int64_t rows) {
  std::optional<int64_t> max_bytes;
  if (config.cache_mb) {
    max_bytes = std::llround(*config.cache_mb * 1e6);
    const int64_t needed = session.llama->cache_bytes(rows);
    if (*max_bytes < needed)
      throw UserError(
          fmt::format("backbone.cache_mb is {}, found a model whose sequences of {} tokens take "
                      "{:.1f} MB each, "
                      "expected room for at least one; raise it, or lower backbone.context",
                      *config.cache_mb, rows, std::ceil(static_cast<double>(needed) / 1e5) / 10));
  }
  return {*session.llama, num_sequences, rows, max_bytes};
}

std::string machine_text(const Llama& llama) {
  return fmt::format("{}, {} threads, {}, {}",
                     llama.device().is_cpu() ? cpu_name() : llama.device().str(),
                     num_threads(llama), llama.number_format(), llama.kernels());
}

}  // namespace medusa
