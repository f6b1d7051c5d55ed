#include "tests/speed/gemm_speed.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "backbone/cuda/cuda_llama.h"
#include "backbone/cuda/device_gemm.h"
#include "backbone/cuda/device_runtime.h"
#include "base/elapsed.h"
#include "base/error.h"
#include "tools/profile/profile.h"

namespace medusa {
namespace {

constexpr int64_t kCopiedBytes = int64_t{512} << 20;  // of all copies: far more than a cache holds
constexpr int64_t kTimedBytes = int64_t{4} << 30;     // read in one sample
constexpr int64_t kMostGemms = 400;                   // of one sample

/// Copies of a weight, and rows.
class Gemms {
 public:
  Gemms(int64_t n, int64_t k, int64_t num_rows, at::Device device) {
    const at::TensorOptions options = at::TensorOptions(device).dtype(at::kBFloat16);
    const int64_t bytes = 2 * n * k;
    count_ = std::clamp<int64_t>(kTimedBytes / bytes, 8, kMostGemms);
    const int64_t copies = std::clamp<int64_t>(kCopiedBytes / bytes, 1, count_);
    for (int64_t i = 0; i < copies; ++i) {
      weights_.push_back(at::randn({n, k}, options));
      gemms_.emplace_back(*cuda_kernels().gemms, device_weight(weights_.back(), device).value());
    }
    x_ = at::randn({num_rows, k}, options);
    y_ = at::empty({num_rows, n}, options.dtype(at::kFloat));
    library_y_ = at::empty({num_rows, n}, options);
    scratch_ = at::empty({std::max<int64_t>(gemms_.front().scratch(), 1)}, y_.options());
    start(nullptr);
    graph_ = cuda_runtime()->capture([this](DeviceStream stream) { start(stream); });
  }

  int64_t count() const { return count_; }
  void run() { graph_->replay(); }
  void run_library() {
    for (int64_t i = 0; i < count_; ++i)
      at::mm_out(library_y_, x_, weights_[static_cast<size_t>(i) % weights_.size()].t());
  }

 private:
  void start(DeviceStream stream) {
    for (int64_t i = 0; i < count_; ++i)
      gemms_[static_cast<size_t>(i) % gemms_.size()](x_, scratch_.data_ptr<float>(), y_, stream);
  }

  int64_t count_ = 0;
  std::vector<at::Tensor> weights_;
  std::vector<DeviceGemm> gemms_;
  at::Tensor x_, y_, library_y_, scratch_;
  std::unique_ptr<DeviceGraph> graph_;
};

/// Microseconds of one of `count` that a run does.
SpeedFigure time_us(const std::function<void()>& run, const std::function<void()>& wait,
                    int64_t count, int64_t samples) {
  run();
  std::vector<double> us;
  for (int64_t i = 0; i < samples; ++i) {
    wait();
    const auto began = std::chrono::steady_clock::now();
    run();
    wait();
    us.push_back(1e6 * seconds_since(began) / static_cast<double>(count));
  }
  return speed_figure(us);
}

}  // namespace

std::vector<GemmSpeed> measure_gemm_speed(const SpeedShape& shape, at::Device device,
                                          int64_t samples) {
  if (device.is_cpu() || !cuda_kernels().complete() || cuda_runtime() == nullptr)
    throw UserError(
        "--only: found gemms, which want a GPU and a program with CUDA kernels, expected --device "
        "cuda and a program made where nvcc is; leave gemms out");
  const c10::InferenceMode no_grad;
  const ModelConfig& c = shape.config;
  struct Named {
    const char* name;
    int64_t n, k;
  };
  const Named weights[] = {{"qkv", (c.num_heads + 2 * c.num_kv_heads) * c.head_size, c.hidden_size},
                           {"output", c.hidden_size, c.num_heads * c.head_size},
                           {"gate_up", 2 * c.mlp_size, c.hidden_size},
                           {"down", c.hidden_size, c.mlp_size},
                           {"lm_head", c.vocab_size, c.hidden_size}};
  const auto wait = device_wait(device);
  std::vector<GemmSpeed> speeds;
  for (const Named& weight : weights)
    for (const int32_t rows : shape.rows) {
      Gemms gemms(weight.n, weight.k, rows, device);
      GemmSpeed& speed = speeds.emplace_back();
      speed.weight = weight.name;
      speed.num_outputs = weight.n;
      speed.num_inputs = weight.k;
      speed.num_rows = rows;
      speed.bytes = 2.0 * static_cast<double>(weight.n) * static_cast<double>(weight.k);
      speed.us = time_us([&] { gemms.run(); }, wait, gemms.count(), samples);
      speed.library_us = time_us([&] { gemms.run_library(); }, wait, gemms.count(), samples);
    }
  return speeds;
}

std::string gemm_speed_table(const std::string& shape, const std::vector<GemmSpeed>& speeds) {
  std::string table =
      fmt::format("{}, bfloat16\n{:<9}{:>15}{:>6}{:>9}{:>18}{:>10}{:>13}\n", shape, "GEMM",
                  "weight", "rows", "us", "quartiles", "GB/s", "LibTorch us");
  for (const GemmSpeed& speed : speeds)
    table +=
        fmt::format("{:<9}{:>15}{:>6}{:>9.2f}{:>18}{:>10.0f}{:>13.2f}\n", speed.weight,
                    fmt::format("{} x {}", speed.num_outputs, speed.num_inputs), speed.num_rows,
                    speed.us.middle, fmt::format("{:.2f} to {:.2f}", speed.us.low, speed.us.high),
                    speed.bytes / speed.us.middle / 1e3, speed.library_us.middle);
  return table;
}

}  // namespace medusa
