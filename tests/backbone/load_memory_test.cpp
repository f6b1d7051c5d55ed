// Loading needs little more memory than what is loaded: no two copies of a model at any time.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <string>

#include "backbone/files/hf_export.h"
#include "backbone/files/load_weights.h"
#include "backbone/llama.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/temp_folder.h"
#include "tests/base/under_asan.h"

#ifndef MEDUSA_ASAN
namespace medusa {
namespace {

/// A line of /proc/self/status, in bytes.
int64_t status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  return 0;
}

/// From now on VmHWM counts.
bool reset_peak() {
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return out.good();
}

/// 100 MB in bfloat16, all of it zeros.
Weights large_weights() {
  ModelConfig config = tiny_config();
  config.num_layers = 12;
  config.hidden_size = 512;
  config.num_heads = 8;
  config.num_kv_heads = 8;
  config.head_size = 64;
  config.mlp_size = 2048;
  const auto matrix = [](int64_t rows, int64_t columns) {
    return at::zeros({rows, columns}, at::kBFloat16);
  };
  Weights weights;
  weights.config = config;
  weights.embedding = weights.lm_head = matrix(config.vocab_size, 512);
  weights.final_norm = at::ones({512});
  for (int64_t i = 0; i < config.num_layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = layer.mlp_norm = at::ones({512});
    layer.qkv = matrix(3 * 512, 512);
    layer.output = matrix(512, 512);
    layer.gate_up = matrix(2 * 2048, 512);
    layer.down = matrix(512, 2048);
    weights.layers.push_back(layer);
  }
  return weights;
}

TEST(LoadMemory, ThePeakIsAtMostAFifthAboveTheWeights) {
  const fixtures::TempFolder folder;
  write_hf_model(folder.path(), large_weights(), "some.gguf");
  if (!reset_peak()) GTEST_SKIP() << "no peak of memory told";
  struct Case {
    at::ScalarType dtype;
    QuantKind kind;
  };
  for (const auto& [dtype, kind] :
       {Case{at::kFloat, QuantKind::None}, Case{at::kBFloat16, QuantKind::None},
        Case{at::kBFloat16, QuantKind::Int8}}) {
    ::malloc_trim(0);  // what was freed before must not be found again as room
    const int64_t before = status_bytes("VmRSS");
    reset_peak();
    WeightsReader reader(folder.path(), dtype, at::kCPU, kind);
    const Llama llama(reader);
    const int64_t peak = status_bytes("VmHWM") - before, after = status_bytes("VmRSS") - before;
    if (kind != QuantKind::None && !llama.uses_pool()) continue;  // the reference, in float32
    EXPECT_GT(after, 40'000'000) << llama.dtype_name();
    EXPECT_LE(static_cast<double>(peak), 1.2 * static_cast<double>(after)) << llama.dtype_name();
  }
}

}  // namespace
}  // namespace medusa
#endif
