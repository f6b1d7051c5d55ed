#include "tools/profile/roofline.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "backbone/linear.h"

namespace medusa {
namespace {

constexpr int64_t kNumbers = 64 << 20;               // float32: 256 MB, many times the last cache
constexpr int64_t kCpuSize = 2048, kGpuSize = 8192;  // of a GEMM's three sides
constexpr int64_t kTrySize = 256;
constexpr int kRooflineRepeats = 5;

/// Seconds of the fastest repetition; the first one warms up.
double fastest(const std::function<void()>& work, const std::function<void()>& wait) {
  double best = 0;
  for (int i = -1; i < kRooflineRepeats; ++i) {
    const auto began = std::chrono::steady_clock::now();
    work();
    if (wait) wait();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (i == 0 || (i > 0 && seconds < best)) best = seconds;
  }
  return best;
}

/// LibTorch's threads, put back at the end.
class LibTorchThreads {
 public:
  explicit LibTorchThreads(int threads) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }
  ~LibTorchThreads() { at::set_num_threads(before_); }
  LibTorchThreads(const LibTorchThreads&) = delete;
  LibTorchThreads& operator=(const LibTorchThreads&) = delete;

 private:
  int before_;
};

}  // namespace

Roofline measure_roofline(at::Device device, at::ScalarType dtype, int threads,
                          const ExecutionContext& execution, const std::function<void()>& wait) {
  const c10::InferenceMode no_grad;
  Roofline roofline;
  const int64_t size = device.is_cpu() ? kCpuSize : kGpuSize;
  const at::Tensor rows = at::rand({size, size}, at::kFloat).to(device, dtype);
  const double flops = 2 * std::pow(static_cast<double>(size), 3);
  {
    const LibTorchThreads all(threads);
    const auto bytes = static_cast<double>(kNumbers) * sizeof(float);
    const at::Tensor from = at::ones({kNumbers}, at::TensorOptions(device).dtype(at::kFloat));
    at::Tensor to = at::empty_like(from), sum;
    roofline.copy_bytes_per_s = 2 * bytes / fastest([&] { to.copy_(from); }, wait);
    roofline.read_bytes_per_s = bytes / fastest([&] { sum = from.sum(); }, wait);
    const auto multiply = [&](at::ScalarType each, int64_t side) {
      const at::Tensor a = rows.narrow(0, 0, side).narrow(1, 0, side).to(each).contiguous();
      at::Tensor gemm;
      return fastest([&] { gemm = at::matmul(a, a); }, wait);
    };
    roofline.flops_per_s = flops / multiply(at::kFloat, size);
    // On a CPU without AVX-512 LibTorch multiplies bfloat16 number by number: minutes.
    if (multiply(dtype, kTrySize) < 4 * multiply(at::kFloat, kTrySize))
      roofline.flops_per_s = std::max(roofline.flops_per_s, flops / multiply(dtype, size));
  }
  const Linear own(rows, execution);
  at::Tensor gemm;
  const double seconds = fastest([&] { gemm = own(rows); }, wait);
  roofline.flops_per_s = std::max(roofline.flops_per_s, flops / seconds);
  return roofline;
}

}  // namespace medusa
