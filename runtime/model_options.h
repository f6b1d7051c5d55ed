// How a model is loaded and where it computes.
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backbone/execution_context.h"
#include "base/fields.h"
#include "base/progress.h"

namespace medusa {

enum class DeviceKind { Auto, Cpu, Cuda };
enum class DtypeKind { Auto, Float32, Bfloat16, Int8, Stored };

template <>
struct EnumNames<DeviceKind> {
  static constexpr std::array<std::pair<const char*, DeviceKind>, 3> values{
      {{"auto", DeviceKind::Auto}, {"cpu", DeviceKind::Cpu}, {"cuda", DeviceKind::Cuda}}};
};
template <>
struct EnumNames<DtypeKind> {
  static constexpr std::array<std::pair<const char*, DtypeKind>, 5> values{
      {{"auto", DtypeKind::Auto},
       {"float32", DtypeKind::Float32},
       {"bfloat16", DtypeKind::Bfloat16},
       {"int8", DtypeKind::Int8},
       {"stored", DtypeKind::Stored}}};
};
template <>
struct EnumNames<CpuIsa> {
  static constexpr std::array<std::pair<const char*, CpuIsa>, 6> values{
      {{"auto", CpuIsa::Auto},
       {"amx", CpuIsa::Amx},
       {"avx512_bf16", CpuIsa::Avx512Bf16},
       {"avx512", CpuIsa::Avx512},
       {"avx2", CpuIsa::Avx2},
       {"plain", CpuIsa::Portable}}};
};

/// Takes a sentence for people, without a newline. It must not call what it was given to.
using NoteFunction = std::function<void(std::string_view)>;

/// Messages call these by the names of the settings: backbone.threads is `threads`.
struct ModelOptions {
  DeviceKind device = DeviceKind::Auto;
  DtypeKind dtype = DtypeKind::Auto;
  CpuIsa cpu = CpuIsa::Auto;
  std::optional<int64_t> threads{};  // of our kernels; what LibTorch computes (float32, models of
                                     // odd sizes) takes the process's at::set_num_threads()
  std::optional<int64_t> context{};
  std::optional<double> cache_mb{};
  std::optional<std::string> chat_template{};
  bool needs_chat_template =
      true;  // false: the model may have none, as it is given no conversation
  std::optional<ExecutionContext> execution{};  // in place of threads and cpu: models that are
                                                // given copies of one share its threads
  /// Says what is wrong with a GPU that `auto` may take; an empty text: nothing. Without it
  /// check_device() (infer/device_check.h) looks at each load, for seconds.
  std::function<std::string(at::Device)> check_gpu{};
  NoteFunction note{};  // what is done otherwise than asked; empty: unsaid
  ProgressFunction
      progress{};  // of reading weights, those of a draft model included; empty: untold

  template <typename Fields>
  void fields(Fields& f) {
    f("device", device, "where to compute; auto: a GPU that passes a check");
    f("dtype", dtype,
      "of the weights. stored: the blocks of 4 to 8 bits of a GGUF file, where the CPU has "
      "AVX512-VNNI much the fastest; int8: such blocks, made when loaded; auto: bfloat16");
    f("cpu", cpu,
      "which instructions decode on a CPU, except in float32; plain: those of any; auto: the "
      "fastest that it has");
    f("threads", threads,
      "CPU threads, at most one for each CPU that the process may use; null: as many",
      at_least<int64_t>(1));
    f("context", context, "most tokens of a sequence; null: 2048 or the model's own, if less",
      at_least<int64_t>(2));
    f("cache_mb", cache_mb,
      "most megabytes (10^6 bytes) of the KV cache, taken as they are used; null: enough for as "
      "many whole contexts as a command decodes at the same time",
      between(0.001, 1e9));
    f("chat_template", chat_template,
      "chatml | llama-2 | llama-3 | zephyr | vicuna | mistral | plain; null: the model's own");
  }
  /// @throws UserError  an execution context besides threads or instructions of its own.
  void validate() const;
};

}  // namespace medusa
