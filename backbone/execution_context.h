// How models, heads and decoders compute: on which threads, with which kernels.
#pragma once

#include <memory>

namespace medusa {

class ThreadPool;

enum class Kernels {
  Auto,       // the fastest that this machine and dtype have
  Reference,  // LibTorch's ops and simple loops: what everything is tested against
};

/// Which of our CPU kernels (backbone/cpu/), where Kernels::Auto takes them.
enum class CpuIsa {
  Auto,        // the fastest that this machine has
  Amx,         // tiles of bfloat16 elements; AVX-512 beside them
  Avx512Bf16,  // dot products of bfloat16 elements; AVX-512 beside them
  Avx512,      // multiply-adds; AVX512-VNNI for quantized weights, as for the two above
  Avx2,        // with fused multiply-add
  Portable,    // C++ for any processor
};

struct ExecutionOptions {
  int threads = 1;  // of our kernels, the caller's included; at least 1
  CpuIsa isa = CpuIsa::Auto;
  Kernels kernels = Kernels::Auto;
};

/// What an application makes and gives to its models, heads and decoders. Copies share the threads,
/// so those that work in turns should be given copies of one context. The device is that of a
/// model's weights; a GPU's work goes to its default stream.
///
/// Thread safety: yes. Who computes on the same threads takes turns.
class ExecutionContext {
 public:
  /// One thread, the caller's. Implicit: whoever asks for kernels alone need not say more.
  ExecutionContext(Kernels kernels = Kernels::Auto);

  /// Starts options.threads - 1 threads, which end with the last copy.
  /// @throws std::system_error  the system has no more threads.
  explicit ExecutionContext(const ExecutionOptions& options);

  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }  // never null
  int num_threads() const;
  CpuIsa isa() const { return isa_; }
  Kernels kernels() const { return kernels_; }

 private:
  std::shared_ptr<ThreadPool> pool_;
  CpuIsa isa_;
  Kernels kernels_;
};

}  // namespace medusa
