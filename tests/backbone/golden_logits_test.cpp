// The whole float32 backbone against transformers on real models. The golden numbers were made by
// tools/dev/make_golden_logits.py.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backbone/llama.h"
#include "base/file.h"

namespace medusa {
namespace {
namespace fs = std::filesystem;

constexpr double kLogitTolerance = 1e-3;

struct GoldenNumbers {
  std::string model, model_sha256;
  std::vector<TokenId> tokens;
  std::vector<int64_t> argmax;
  std::vector<double> top2_gap, logsumexp;
  std::vector<std::vector<int64_t>> largest_ids;
  std::vector<std::vector<double>> largest_logits;
};

GoldenNumbers read_golden_logits(const std::string& name) {
  const auto file = nlohmann::json::parse(
      read_file(fs::path(MEDUSA_SOURCE_DIR) / "tests/golden" / (name + "_logits.json")));
  return {file.at("model"),       file.at("model_sha256"),  file.at("tokens"),
          file.at("argmax"),      file.at("top2_gap"),      file.at("logsumexp"),
          file.at("largest_ids"), file.at("largest_logits")};
}

/// Expects every position's logits to agree with the golden ones.
/// @param logits  [T, V] float32.
void expect_golden(const GoldenNumbers& golden, const at::Tensor& logits) {
  const auto argmax = logits.argmax(-1);                          // [T]
  const auto logsumexp = logits.to(at::kDouble).logsumexp({-1});  // [T]
  double largest_error = 0;
  for (size_t i = 0; i < golden.tokens.size(); ++i) {
    const auto row = logits[static_cast<int64_t>(i)];
    if (golden.top2_gap[i] >= kLogitTolerance) {
      EXPECT_EQ(argmax[static_cast<int64_t>(i)].item<int64_t>(), golden.argmax[i])
          << "position " << i;
    }
    for (size_t j = 0; j < golden.largest_ids[i].size(); ++j) {
      const double error =
          std::abs(row[golden.largest_ids[i][j]].item<double>() - golden.largest_logits[i][j]);
      largest_error = std::max(largest_error, error);
      EXPECT_LT(error, kLogitTolerance)
          << "position " << i << ", token " << golden.largest_ids[i][j];
    }
    EXPECT_NEAR(logsumexp[static_cast<int64_t>(i)].item<double>(), golden.logsumexp[i],
                kLogitTolerance)
        << "position " << i;
  }
  testing::Test::RecordProperty("largest_error", std::to_string(largest_error));
}

/// [T, V]
at::Tensor run_golden(const GoldenNumbers& golden, Llama& model) {
  const auto num_tokens = static_cast<int64_t>(golden.tokens.size());
  KvCache cache = model.make_cache(1, num_tokens);
  const Segment text{cache.open(), golden.tokens, {}};
  const at::Tensor hidden = model.forward(std::span(&text, 1), cache).clone();  // [T, H]
  return model.logits(hidden);
}

/// The file's own blocks, with rows rounded to 8 bits: the same text but for close calls.
TEST(BlockLogits, StoredBlocksStayCloseToTransformers) {
  const GoldenNumbers golden = read_golden_logits("smollm2");
  const fs::path path = fs::path(MEDUSA_SOURCE_DIR) / ".deps" / "models" / golden.model;
  if (!fs::exists(path)) GTEST_SKIP() << "no " << path << "; tools/get_demo_model.sh downloads it";
  ASSERT_TRUE(stores_blocks(path));
  for (const Kernels kernels : {Kernels::Auto, Kernels::Plain}) {
    Llama model(load_weights(path, at::kBFloat16, at::kCPU, BlockKind::Stored), kernels);
    EXPECT_STREQ(model.number_format(), "stored");
    const at::Tensor logits = run_golden(golden, model), argmax = logits.argmax(-1);
    int64_t same = 0;
    double error = 0;
    for (size_t i = 0; i < golden.tokens.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      same += argmax[row].item<int64_t>() == golden.argmax[i] ? 1 : 0;
      error += std::abs(logits[row][golden.largest_ids[i][0]].item<double>() -
                        golden.largest_logits[i][0]);
    }
    const auto count = static_cast<int64_t>(golden.tokens.size());
    EXPECT_GE(same, count * 96 / 100) << model.kernels();
    EXPECT_LT(error / static_cast<double>(count), 0.25) << model.kernels();
  }
}

class GoldenLogits : public testing::TestWithParam<const char*> {};

TEST_P(GoldenLogits, Float32AgreesWithTransformersAtEveryPosition) {
  const GoldenNumbers golden = read_golden_logits(GetParam());
  const fs::path path = fs::path(MEDUSA_SOURCE_DIR) / ".deps" / "models" / golden.model;
  if (!fs::exists(path)) GTEST_SKIP() << "no " << path << "; tools/get_demo_model.sh downloads it";
  Llama model(load_weights(path, at::kFloat, at::kCPU));
  ASSERT_EQ(model.weights().fingerprint, "sha256:" + golden.model_sha256);

  const at::Tensor logits = run_golden(golden, model);
  ASSERT_EQ(logits.sizes(), (at::IntArrayRef{static_cast<int64_t>(golden.tokens.size()),
                                             model.config().vocab_size}));
  expect_golden(golden, logits);
}

// The second one needs 7 GB of memory and tools/get_demo_model.sh qwen-coder-1.5b.
INSTANTIATE_TEST_SUITE_P(Models, GoldenLogits, testing::Values("smollm2", "qwen2.5_coder"));

}  // namespace
}  // namespace medusa
