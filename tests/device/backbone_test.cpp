// The backbone's plain path, on a device, gives the CPU's numbers.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "backbone/attention.h"
#include "backbone/files/hf_export.h"
#include "backbone/files/safetensors.h"
#include "backbone/llama.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/backbone/quantized_weights.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/device/test_devices.h"

namespace medusa {
namespace {

using fixtures::normal;

class BackboneOnDevice : public fixtures::OnDevice {
 protected:
  static void commit_first(KvCache& cache, int32_t slot, int32_t count) {
    std::vector<int32_t> rows(static_cast<size_t>(count));
    std::iota(rows.begin(), rows.end(), 0);
    cache.commit(slot, rows);
  }

  /// All states and logits of two prompts, of a tree behind each, and of another tree behind the
  /// scattered path that is kept.
  static std::vector<at::Tensor> decode(const Weights& weights) {
    Llama llama(weights, Kernels::Reference);
    KvCache cache = llama.make_cache(2, 200);
    std::vector<at::Tensor> out;
    for (const uint64_t seed : {1U, 2U})
      out.push_back(llama.prefill(cache.open(), random_tokens(seed, seed == 1 ? 150 : 20), cache));
    const std::vector<int32_t> parents{-1, 0, 0, 1, 2, 4, 1}, path{0, 2, 4, 5};
    const std::vector<TokenId> tree = random_tokens(3, 7), chain = random_tokens(4, 3);
    for (int step = 0; step < 2; ++step) {
      const std::vector<Segment> segments{{1, tree, parents}, {0, chain, {}}};
      const at::Tensor hidden = llama.forward(segments, cache);
      out.push_back(hidden);
      out.push_back(llama.logits(hidden));
      cache.commit(1, path);
      commit_first(cache, 0, 2);
      cache.rewind(0, cache.length(0) - 1);
    }
    return out;
  }
};
MEDUSA_ON_EVERY_DEVICE(BackboneOnDevice);

TEST_P(BackboneOnDevice, StatesAndLogitsAreTheCpus) {
  for (const ModelConfig& config : {tiny_config(), uneven_config()}) {
    const Weights weights = tiny_weights(1, config);
    const auto expected = decode(weights), found = decode(on_device(weights, device()));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i].device(), device());
      expect_close(found[i], expected[i], 1e-4);
    }
  }
}

TEST_P(BackboneOnDevice, Bfloat16IsTheCpusWithinRounding) {
  const Weights weights = tiny_weights(1, tiny_config(), at::kBFloat16);
  const auto expected = decode(weights), found = decode(on_device(weights, device()));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].scalar_type(), expected[i].scalar_type());
    expect_close(found[i].to(at::kFloat), expected[i].to(at::kFloat), 0.05);
  }
}

TEST_P(BackboneOnDevice, BlocksOfAModelThatNoKernelMultipliesAreTheUsersError) {
  ModelConfig config = tiny_config();
  config.head_size = 40;
  const Weights weights = on_device(quantized(tiny_weights(1, config, at::kBFloat16)), device());
  EXPECT_EQ(fixtures::error_text([&] { Llama(weights, Kernels::Auto); }),
            "backbone.dtype is 'stored', found a model with heads of 40 numbers, 2 to a key/value "
            "head, expected sizes that our kernels multiply on a GPU (docs/guide/gpu.md); use "
            "--dtype bfloat16");
}

TEST_P(BackboneOnDevice, BothWaysOfAttentionAgree) {
  KvCache cache(tiny_config(), 2, 64, at::kFloat, device(), KvLayout::Rows, {.whole_slots = true});
  for (const int32_t length : {5, 21}) commit_first(cache, cache.open(), length);
  cache.keys().copy_(normal(cache.keys().sizes(), 1));
  cache.values().copy_(normal(cache.values().sizes(), 2));
  const std::vector<int32_t> parents{-1, 0, 0, 1, 2, 4, 1};
  const std::vector<TokenId> tokens(parents.size(), 1);
  const std::vector<Segment> segments{{1, tokens, parents}, {0, std::span(tokens).first(3), {}}};
  const ForwardPlan plan = plan_forward(segments, cache);
  const at::Tensor query =
      normal({plan.size(), tiny_config().num_heads, tiny_config().head_size}, 3).to(device());
  AttentionMasks masks(plan, device());
  for (const int64_t window : {0, 2, 6, 20}) {
    const at::Tensor path = path_attention(plan, 0, query, cache, window);
    EXPECT_EQ(path.device(), device());
    expect_close(masked_attention(plan, 0, query, cache, masks, window), path.cpu());
  }
}

TEST_P(BackboneOnDevice, TheCacheMovesAndGrowsAsOnTheCpu) {
  const auto keys_after = [](at::Device where) {
    KvCache cache(tiny_config(), 3, 64, at::kFloat, where, KvLayout::Rows, {.whole_slots = true});
    for (int i = 0; i < 2; ++i) cache.open();
    commit_first(cache, 0, 9);
    cache.keys().copy_(normal(cache.keys().sizes(), 1));
    cache.values().copy_(normal(cache.values().sizes(), 2));
    const std::vector<int32_t> kept{0, 3, 4, 9, 30};
    cache.commit(0, kept);
    cache.rewind(0, 12);
    KvCache larger(tiny_config(), 3, 100, at::kFloat, where, KvLayout::Rows, {.whole_slots = true});
    larger.take_rows(larger.open(), cache, 0);
    EXPECT_EQ(larger.length(0), 12);
    EXPECT_EQ(larger.keys().device(), where);
    return at::stack({larger.keys(), larger.values()}).cpu();
  };
  EXPECT_TRUE(at::equal(keys_after(device()), keys_after(at::kCPU)));
}

TEST_P(BackboneOnDevice, AModelsFilesAreReadToItAndWrittenFromIt) {
  const std::filesystem::path file = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";
  const fixtures::TempFolder folder, written;
  write_hf_model(written.path(), load_weights(file, at::kFloat, at::kCPU), file);
  for (const auto& source : {file, written.path()}) {
    const Weights there = load_weights(source, at::kFloat, device());
    EXPECT_EQ(there.lm_head.device(), device());
    EXPECT_EQ(there.layers[0].down.device(), device());
    EXPECT_EQ(there.lm_head.is_same(there.embedding), there.config.tied_output);
  }
  write_hf_model(folder.path(), load_weights(file, at::kFloat, device()), file);
  const Weights again = load_weights(folder.path(), at::kFloat, at::kCPU),
                expected = load_weights(file, at::kFloat, at::kCPU);
  EXPECT_TRUE(at::equal(again.layers[1].qkv, expected.layers[1].qkv));
  EXPECT_TRUE(at::equal(again.lm_head, expected.lm_head));
}

}  // namespace
}  // namespace medusa
