#include "tests/speed/step_speed.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "backbone/cuda/cuda_llama.h"
#include "backbone/cuda/device_runtime.h"
#include "backbone/llama.h"
#include "backbone/random_weights.h"
#include "base/elapsed.h"
#include "base/error.h"
#include "runtime/measure/interleave.h"
#include "runtime/measure/quantiles.h"
#include "tools/profile/profile.h"

namespace medusa {
namespace {

/// Something to time.
struct SpeedThing {
  SpeedRow row;
  std::function<at::Tensor()> run;
};

struct SpeedSample {
  double ms = 0, host_ms = 0;
};

ModelConfig llama_config(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads,
                         int64_t mlp, int64_t vocab) {
  ModelConfig config;
  config.architecture = "llama";
  config.num_layers = layers;
  config.hidden_size = hidden;
  config.num_heads = heads;
  config.num_kv_heads = kv_heads;
  config.head_size = hidden / heads;
  config.mlp_size = mlp;
  config.vocab_size = vocab;
  config.context = 4096;
  config.norm_epsilon = 1e-5;
  config.rope_base = 10000;
  config.eos = {0};
  return config;
}

/// A copy too large for any cache and a product large enough to keep all of the device busy.
std::vector<SpeedThing> device_limits(at::ScalarType dtype, at::Device device) {
  const int64_t bytes = device.is_cpu() ? int64_t{1} << 25 : int64_t{1} << 30;
  const int64_t size = device.is_cpu() ? 512 : 8192;
  const at::TensorOptions options = at::TensorOptions(device).dtype(dtype);
  const at::Tensor from = at::ones({bytes / static_cast<int64_t>(elementSize(dtype))}, options),
                   to = at::empty_like(from), square = at::randn({size, size}, options);
  std::vector<SpeedThing> limits(2);
  limits[0].row.name = fmt::format("copy of {} MB", bytes >> 20);
  limits[0].row.bytes = 2.0 * static_cast<double>(bytes);
  limits[0].run = [from, to] { return to.copy_(from); };
  limits[1].row.name = fmt::format("product of {0} x {0}", size);
  limits[1].row.flops = 2 * std::pow(static_cast<double>(size), 3);
  limits[1].run = [square] { return at::matmul(square, square); };
  return limits;
}

/// A model with the contexts of a shape in its cache, one slot each.
class SpeedModel {
 public:
  SpeedModel(const Weights& weights, Kernels kernels, const SpeedShape& shape)
      : llama_(weights, kernels),
        most_rows_(std::ranges::max(shape.rows)),
        most_(std::ranges::max(shape.contexts) + most_rows_),
        cache_(llama_.make_cache(static_cast<int32_t>(shape.contexts.size()), most_)),
        text_(speed_text(most_, shape.config.vocab_size)) {
    for (const int64_t context : shape.contexts) {
      slots_[context] = cache_.open();
      llama_.prefill(slots_[context], std::span(text_).first(static_cast<size_t>(context)), cache_);
    }
  }

  const Llama& llama() const { return llama_; }
  bool is_fast() { return llama_.rows_are_independent(); }
  bool has_graphs() { return as_cuda(llama_.backend()) != nullptr && cuda_runtime() != nullptr; }

  /// A step up to the logits of all rows, [N, V]; does not wait for the device.
  /// @param graphs  our kernels on a GPU: whether the pass is one, as under the host's loop.
  std::function<at::Tensor()> launched(int64_t context, int32_t rows, bool graphs = false) {
    return [this, context, rows, graphs] {
      if (CudaLlama* device = as_cuda(llama_.backend())) device->use_graphs(graphs);
      const Segment step = chain(context, rows);
      return llama_.logits(llama_.forward({&step, 1}, cache_));
    };
  }

  /// The same from a graph that is captured now.
  std::function<at::Tensor()> captured(int64_t context, int32_t rows) {
    CudaLlama& device = *as_cuda(llama_.backend());
    device.reserve(most_rows_, most_);  // all there will be: graphs keep the buffers' places
    device.reserve_logits(most_rows_);
    launched(context, rows)();  // kernels are loaded when they are first started
    const Segment step = chain(context, rows);
    const auto plan = std::make_shared<UploadedPlan>(plan_forward({&step, 1}, cache_),
                                                     device.tile_rows(), llama_.device());
    const float* elements = nullptr;
    const std::shared_ptr<DeviceGraph> graph = cuda_runtime()->capture([&](DeviceStream stream) {
      const Bf16* hidden = device.run(plan->pass(), device_view(cache_), stream);
      elements = device.run_logits(hidden, rows, stream);
    });
    const at::Tensor logits =
        at::from_blob(const_cast<float*>(elements), {rows, llama_.config().vocab_size},
                      at::TensorOptions(llama_.device()).dtype(at::kFloat));
    return [plan, graph, logits] {
      graph->replay();
      return logits;
    };
  }

 private:
  Segment chain(int64_t context, int32_t rows) const {
    return {slots_.at(context),
            std::span(text_).subspan(static_cast<size_t>(context), static_cast<size_t>(rows)),
            {}};
  }

  Llama llama_;
  int64_t most_rows_;  // of a step
  int64_t most_;       // tokens of a slot
  KvCache cache_;
  std::vector<TokenId> text_;
  std::map<int64_t, int32_t> slots_;  // by context
};

/// The ways of running one step; the first is what the others' logits are compared with.
std::vector<SpeedThing> step_ways(SpeedModel& plain, SpeedModel& fast, int64_t context,
                                  int32_t rows) {
  std::vector<std::pair<const char*, std::function<at::Tensor()>>> ways{
      {"plain", plain.launched(context, rows)}};
  if (fast.is_fast()) ways.emplace_back("kernels", fast.launched(context, rows));
  if (fast.has_graphs()) {
    ways.emplace_back("passes", fast.launched(context, rows, true));
    ways.emplace_back("graph", fast.captured(context, rows));
  }
  const at::Tensor expected = ways.front().second().clone();
  std::vector<SpeedThing> things;
  for (auto& [name, run] : ways) {
    SpeedThing thing;
    thing.row.name =
        fmt::format("{}: {} row{} behind {}", name, rows, rows == 1 ? "" : "s", context);
    thing.row.is_step = true;
    const at::Tensor logits = run();
    if (!at::isfinite(logits).all().item<bool>())
      throw std::runtime_error(thing.row.name + ": logits that are not finite");
    thing.row.difference = ((logits - expected).abs().max() / expected.std()).item().toDouble();
    thing.run = std::move(run);
    things.push_back(std::move(thing));
  }
  return things;
}

/// Fills in what the samples say.
void time_interleaved(std::vector<SpeedThing>& things, int64_t samples,
                      const std::function<void()>& wait) {
  std::vector<std::vector<double>> ms(things.size()), host_ms(things.size());
  const auto step = [&](size_t i) {
    if (wait) wait();
    const auto began = std::chrono::steady_clock::now();
    const at::Tensor kept = things[i].run();
    SpeedSample sample;
    sample.host_ms = 1e3 * seconds_since(began);
    if (wait) wait();
    sample.ms = 1e3 * seconds_since(began);
    return sample;
  };
  interleave(things.size(), samples, step, [&](size_t i, const SpeedSample& sample) {
    ms[i].push_back(sample.ms);
    host_ms[i].push_back(sample.host_ms);
    return true;
  });
  for (size_t i = 0; i < things.size(); ++i) {
    things[i].row.ms = speed_figure(ms[i]);
    things[i].row.host_ms = median(host_ms[i]);
  }
}

}  // namespace

std::vector<TokenId> speed_text(int64_t length, int64_t vocab_size) {
  std::vector<TokenId> text;
  for (int64_t i = 0; i < length; ++i) text.push_back(static_cast<TokenId>(7919 * i % vocab_size));
  return text;
}

SpeedFigure speed_figure(const std::vector<double>& samples) {
  return {quantile(samples, 0.25), median(samples), quantile(samples, 0.75)};
}

SpeedShape speed_shape(std::string_view name) {
  const std::vector<int64_t> contexts{512, 2048};
  const std::vector<int32_t> rows{1, 8, 16, 32, 64};
  if (name == "tiny") return {"tiny", llama_config(2, 64, 2, 1, 96, 256), {16, 48}, {1, 16}};
  if (name == "smollm2-135m") {
    ModelConfig config = llama_config(30, 576, 9, 3, 1536, 49152);
    config.tied_output = true;
    return {"smollm2-135m", config, contexts, rows};
  }
  if (name == "llama-2-7b")
    return {"llama-2-7b", llama_config(32, 4096, 32, 32, 11008, 32000), contexts, rows};
  if (name == "llama-3-8b")
    return {"llama-3-8b", llama_config(32, 4096, 32, 8, 14336, 128256), contexts, rows};
  throw UserError(
      fmt::format("--shape: found '{}', expected tiny, smollm2-135m, llama-2-7b or llama-3-8b; "
                  "choose one of these",
                  name));
}

StepSpeed measure_step_speed(const SpeedShape& shape, at::ScalarType dtype, at::Device device,
                             int64_t samples, uint64_t seed) {
  const c10::InferenceMode no_grad;
  const Weights weights = random_weights(shape.config, dtype, device, seed);
  SpeedModel plain(weights, Kernels::Reference, shape), fast(weights, Kernels::Auto, shape);
  StepSpeed speed{shape.name, device.str(), plain.llama().dtype_name(), fast.llama().kernels(), 0,
                  {}};
  for (const int64_t bytes : plain.llama().weight_bytes())
    speed.weight_bytes += static_cast<double>(bytes);

  std::vector<SpeedThing> things = device_limits(dtype, device);
  const ModelConfig& config = shape.config;
  const int64_t bytes_of_position = 2 * config.num_layers * config.num_kv_heads * config.head_size *
                                    static_cast<int64_t>(elementSize(dtype));  // keys and values
  for (const int64_t context : shape.contexts)
    for (const int32_t rows : shape.rows)
      for (SpeedThing& thing : step_ways(plain, fast, context, rows)) {
        thing.row.bytes = speed.weight_bytes + static_cast<double>(context * bytes_of_position);
        things.push_back(std::move(thing));
      }
  time_interleaved(things, samples, device_wait(device));
  for (SpeedThing& thing : things) speed.rows.push_back(std::move(thing.row));
  return speed;
}

void run_marked_steps(const SpeedShape& shape, at::ScalarType dtype, at::Device device,
                      uint64_t seed, const std::function<void(bool)>& mark) {
  const c10::InferenceMode no_grad;
  SpeedModel model(random_weights(shape.config, dtype, device, seed), Kernels::Auto, shape);
  const auto wait = device_wait(device);
  for (const int64_t context : shape.contexts)
    for (const int32_t rows : shape.rows) {
      const auto step = model.launched(context, rows);
      step();
      if (wait) wait();
      mark(true);
      step();
      if (wait) wait();
      mark(false);
    }
}

std::string step_speed_table(const StepSpeed& speed) {
  double copied_per_ms = 0;  // bytes
  for (const SpeedRow& row : speed.rows)
    if (!row.is_step && row.bytes > 0) copied_per_ms = row.bytes / row.ms.middle;
  std::string table =
      fmt::format("{}, {}, {}: a step reads {:.3f} GB of weights; plain: LibTorch, kernels: {}\n",
                  speed.shape, speed.device, speed.dtype, speed.weight_bytes / 1e9, speed.kernels);
  table += fmt::format("{:<29}{:>10}{:>20}{:>10}{:>7}   {}\n", "", "ms", "quartiles", "host ms",
                       "apart", "rate");
  for (const SpeedRow& row : speed.rows) {
    const auto rate = [&] {
      if (row.flops > 0) return fmt::format("{:.1f} TFLOP/s", row.flops / row.ms.middle / 1e9);
      if (!row.is_step) return fmt::format("{:.1f} GB/s", row.bytes / row.ms.middle / 1e6);
      const double share = row.bytes / row.ms.middle / copied_per_ms;
      return fmt::format("weights and cache at {:.1f} GB/s, {:.1f} % of the copy",
                         row.bytes / row.ms.middle / 1e6, 100 * share);
    };
    const std::string quartiles = fmt::format("{:.3f} to {:.3f}", row.ms.low, row.ms.high);
    const std::string apart = row.is_step ? fmt::format("{:.3f}", row.difference) : "";
    table += fmt::format("{:<29}{:>10.3f}{:>20}{:>10.3f}{:>7}   {}\n", row.name, row.ms.middle,
                         quartiles, row.host_ms, apart, rate());
  }
  return table;
}

}  // namespace medusa
