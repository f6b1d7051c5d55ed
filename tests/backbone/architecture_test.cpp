// A tiny model of every architecture against transformers, read from a Hugging Face folder and from
// a GGUF file. The golden numbers were made by tools/dev/make_architecture_golden.py.
#include "backbone/architecture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/backbone/architecture_models.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kTolerance = 1e-4;

void expect_golden(const json& entry, const at::Tensor& logits) {
  const auto sums = entry.at("logsumexp").get<std::vector<double>>();
  const auto first = entry.at("first_logits").get<std::vector<std::vector<double>>>();
  ASSERT_EQ(logits.size(0), static_cast<int64_t>(sums.size()));
  const at::Tensor found = logits.to(at::kDouble).logsumexp({-1});
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(found[static_cast<int64_t>(i)].item<double>(), sums[i], kTolerance) << i;
    for (size_t j = 0; j < first[i].size(); ++j)
      EXPECT_NEAR(logits[static_cast<int64_t>(i)][static_cast<int64_t>(j)].item<double>(),
                  first[i][j], kTolerance)
          << i << " " << j;
  }
}

TEST(Architecture, EveryOneAgreesWithTransformers) {
  const fixtures::TempFolder folder;
  const json golden = read_golden();
  const auto tokens = golden.at("tokens").get<std::vector<TokenId>>();
  std::set<std::string_view> seen;
  for (const auto& [name, entry] : golden.items()) {
    if (!is_model(entry)) continue;
    SCOPED_TRACE(name);
    const fs::path model = write_folder(folder.path() / name, entry.at("config"));
    const Weights weights = load_weights(model, at::kFloat, at::kCPU);
    expect_golden(entry, logits_of(weights, tokens));
    seen.insert(find_architecture(weights.config.architecture)->name);
  }
  for (const Architecture& architecture : architectures())
    EXPECT_TRUE(seen.contains(architecture.name)) << architecture.name << " is not compared";
}

TEST(Architecture, GgufFilesGiveTheSameLogits) {
  const fixtures::TempFolder folder;
  const json golden = read_golden();
  const auto tokens = golden.at("tokens").get<std::vector<TokenId>>();
  for (const auto& [name, entry] : golden.items()) {
    if (!is_model(entry) || !entry.at("in_gguf").get<bool>()) continue;
    SCOPED_TRACE(name);
    const fs::path model = write_folder(folder.path() / name, entry.at("config"));
    const ModelConfig config = read_hf_config(model);
    const fs::path gguf = folder.path() / "a.gguf";
    gguf_model(config, entry.at("config")).write(gguf);
    const Weights weights = load_weights(gguf, at::kFloat, at::kCPU);
    EXPECT_EQ(weights.config.qkv_bias, config.qkv_bias);
    EXPECT_EQ(weights.config.rope_factors.size(), config.rope_factors.size());
    EXPECT_EQ(weights.config.context, config.context);
    EXPECT_EQ(weights.config.no_rope, config.no_rope);
    EXPECT_EQ(weights.config.windows, config.windows);
    EXPECT_EQ(weights.config.rotary_dim, config.rotary_dim);
    expect_golden(entry, logits_of(weights, tokens));
  }
}

TEST(Architecture, TextsEndWhereNoKeySaysWhichLayersHaveAWindow) {
  const fixtures::TempFolder folder;
  const json golden = read_golden();
  const json& settings = golden.at("qwen2").at("config");
  const fs::path model = write_folder(folder.path() / "qwen2", settings);
  const ModelConfig whole = read_hf_config(model);
  fixtures::GgufBuilder gguf = gguf_model(whole, settings);
  gguf.set("qwen2.attention.sliding_window", 12u).write(folder.path() / "a.gguf");
  const ModelConfig config = read_gguf_config(GgufFile(folder.path() / "a.gguf"));
  EXPECT_EQ(whole.context, 64);
  EXPECT_EQ(config.context, 12);
  EXPECT_TRUE(config.windows.empty());
}

TEST(Architecture, BlocksOfEightBitsAgreeWithinTheirRounding) {
  const fixtures::TempFolder folder;
  const json golden = read_golden();
  const auto tokens = golden.at("tokens").get<std::vector<TokenId>>();
  for (const auto& [name, entry] : golden.items()) {
    if (!is_model(entry)) continue;
    SCOPED_TRACE(name);
    const fs::path model = write_folder(folder.path() / name, entry.at("config"));
    const at::Tensor exact = logits_of(load_weights(model, at::kFloat, at::kCPU), tokens);
    const at::Tensor rounded =
        logits_of(load_weights(model, at::kFloat, at::kCPU, QuantKind::Int8), tokens);
    EXPECT_LT((rounded - exact).norm().item<double>(), 0.05 * exact.norm().item<double>());
  }
}

}  // namespace
}  // namespace medusa
