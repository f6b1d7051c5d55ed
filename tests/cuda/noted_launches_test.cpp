// What a step asks of a GPU at the sizes of real models: kernels, blocks, shared memory. Nothing is
// computed. The lists are recorded for tools/dev/gpu/compiled.py, which joins them with what the
// compiler made of each kernel.
#include <c10/core/InferenceMode.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "infer/cuda/device_step.h"
#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/every_device.h"
#include "tests/speed/step_speed.h"
#include "tools/profile/profile.h"

extern "C" const char __executable_start;  // the linker's: what symbols' addresses count from

namespace medusa {
namespace {

constexpr int64_t kContext = 2048;
constexpr int32_t kHeads = 4, kTopK = 10;

/// Memory that nobody writes costs nothing.
Weights unwritten_weights(ModelConfig config, int64_t num_layers) {
  config.num_layers = num_layers;
  const auto matrix = [](int64_t rows, int64_t columns) {
    return at::empty({rows, columns}, at::kBFloat16);
  };
  const auto norm = [&] { return at::empty({config.hidden_size}, at::kFloat); };
  const int64_t query = config.num_heads * config.head_size;
  Weights weights;
  weights.config = config;
  weights.embedding = weights.lm_head = matrix(config.vocab_size, config.hidden_size);
  weights.final_norm = norm();
  for (int64_t i = 0; i < config.num_layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = norm();
    layer.qkv = matrix(query + 2 * config.num_kv_heads * config.head_size, config.hidden_size);
    layer.output = matrix(config.hidden_size, query);
    layer.mlp_norm = norm();
    layer.gate_up = matrix(2 * config.mlp_size, config.hidden_size);
    layer.down = matrix(config.hidden_size, config.mlp_size);
    weights.layers.push_back(std::move(layer));
  }
  return weights;
}

MedusaHeads unwritten_heads(const Weights& weights) {
  HeadsConfig config;
  config.num_heads = kHeads;
  config.input = HeadInput::Root;
  std::vector<TokenId> kept(static_cast<size_t>(config.output_size));
  std::iota(kept.begin(), kept.end(), 0);
  return make_heads(config, weights, kept, 1);
}

struct NotedStep {
  std::vector<NotedLaunch> launches;
  int64_t weight_bytes = 0;  // that it reads
};

/// The second step, whose buffers are there.
/// @param heads  null: a plain step.
NotedStep noted_step(const Weights& weights, const MedusaHeads* heads, int32_t num_nodes,
                     DeviceRule rule) {
  const c10::InferenceMode no_grad;
  LaunchNotes notes;
  const DeviceKernels kernels{emulated_layer_kernels(), emulated_gemm_kernels()};
  Llama llama(weights, std::make_unique<CudaLlama>(weights, kernels));
  const KvCache cache = llama.make_cache(1, kContext + CudaLlama::kRowsBehind);
  TreeShape shape;
  std::unique_ptr<DeviceHeads> drafting;
  if (heads != nullptr) {
    shape = make_choice_tree(low_rank_paths(kHeads, kTopK, static_cast<size_t>(num_nodes) - 1),
                             kTopK, "test")
                .shape();
    drafting = std::make_unique<DeviceHeads>(*heads, weights, shape, kTopK,
                                             *emulated_head_kernels(), *emulated_gemm_kernels(),
                                             pick_with(*emulated_step_kernels()));
  }
  DeviceStep step(*as_cuda(llama.backend()), drafting.get(), shape, {rule, 0.7, 0.3, 0.09},
                  *emulated_step_kernels(), cache, 1);
  step.run(1, kContext, nullptr);
  notes.list.clear();
  step.run(1, kContext, nullptr);
  const auto bytes = llama.backend().weight_bytes();
  return {std::move(notes.list), std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) +
                                     (drafting ? drafting->bytes() : 0)};
}

nlohmann::json json_of(const NotedLaunch& launch) {
  return {{"kernel", launch.kernel - reinterpret_cast<uintptr_t>(&__executable_start)},
          {"blocks", {launch.blocks.x, launch.blocks.y, launch.blocks.z}},
          {"cluster", launch.cluster},
          {"threads", launch.threads},
          {"shared_bytes", launch.shared_bytes}};
}

TEST(NotedLaunches, OfStepsFitTheDeviceAndDoNotGrowWithTheTree) {
  nlohmann::json recorded = nlohmann::json::array();
  for (const char* name : {"smollm2-135m", "llama-2-7b", "llama-3-8b"}) {
    SCOPED_TRACE(name);
    const ModelConfig config = speed_shape(name).config;
    const Weights one = unwritten_weights(config, 1), two = unwritten_weights(config, 2);
    const MedusaHeads heads = unwritten_heads(one);
    std::set<size_t> layer_kernels;
    for (const int32_t nodes : {1, 8, 16, 32, 64}) {
      SCOPED_TRACE(nodes);
      const MedusaHeads* drafting = nodes > 1 ? &heads : nullptr;
      const DeviceRule rule = nodes > 1 ? DeviceRule::Typical : DeviceRule::Greedy;
      const NotedStep step = noted_step(one, drafting, nodes, rule),
                      longer = noted_step(two, drafting, nodes, rule);
      const size_t of_a_layer = longer.launches.size() - step.launches.size();
      layer_kernels.insert(of_a_layer);
      nlohmann::json list = nlohmann::json::array();
      for (const NotedLaunch& launch : step.launches) {
        EXPECT_LE(launch.threads, 1024);
        EXPECT_LE(launch.cluster, 8);
        EXPECT_EQ(launch.blocks.x % static_cast<unsigned>(launch.cluster), 0U);
        EXPECT_LE(launch.shared_bytes, 227U * 1024) << "of compute capability 9.0";
        EXPECT_LE(launch.blocks.y, 65535U);
        list.push_back(json_of(launch));
      }
      recorded.push_back({{"shape", name},
                          {"nodes", nodes},
                          {"layers", config.num_layers},
                          {"kernels_of_a_layer", of_a_layer},
                          {"bytes_of_a_layer", longer.weight_bytes - step.weight_bytes},
                          {"bytes", step.weight_bytes},
                          {"launches", list}});
    }
    EXPECT_EQ(layer_kernels, std::set<size_t>{5});
  }
  RecordProperty("steps", recorded.dump());
}

TEST(NotedLaunches, AStepRunsAgainOnceNobodyNotes) {
  const at::Tensor x = at::ones({4}, at::kFloat), y = at::zeros({4}, at::kBFloat16);
  const auto round = [&] {
    emulated_head_kernels()->round_rows({.x = x.const_data_ptr<float>(),
                                         .num_rows = 1,
                                         .size = 4,
                                         .out = static_cast<Bf16*>(y.data_ptr())},
                                        nullptr);
  };
  {
    const LaunchNotes notes;
    round();
    EXPECT_EQ(notes.list.size(), 1U);
  }
  EXPECT_EQ(y.sum().item<float>(), 0);
  round();
  EXPECT_EQ(y.sum().item<float>(), 4);
}

}  // namespace
}  // namespace medusa
