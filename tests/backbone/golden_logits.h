// What transformers computes with a model, and whether our float32 backbone computes the same. The
// numbers were made by tools/dev/make_golden_logits.py.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backbone/llama.h"
#include "base/error.h"
#include "base/file.h"

namespace medusa {

inline constexpr double kLogitTolerance = 1e-3;

struct GoldenNumbers {
  std::string model, model_sha256;
  std::vector<TokenId> tokens;
  std::vector<int64_t> argmax;
  std::vector<double> top2_gap, logsumexp;
  std::vector<std::vector<int64_t>> largest_ids;
  std::vector<std::vector<double>> largest_logits;
};

inline GoldenNumbers read_golden_logits(const std::string& name) {
  const auto file = nlohmann::json::parse(read_file(std::filesystem::path(MEDUSA_SOURCE_DIR) /
                                                    "tests/golden" / (name + "_logits.json")));
  return {file.at("model"),       file.at("model_sha256"),  file.at("tokens"),
          file.at("argmax"),      file.at("top2_gap"),      file.at("logsumexp"),
          file.at("largest_ids"), file.at("largest_logits")};
}

/// Where a model lies that tools/get_demo_model.sh gets.
/// @param what  that tool's name of it, behind a space; empty for the demo's.
/// @throws UserError  it is not there.
inline std::filesystem::path downloaded_model(const GoldenNumbers& golden,
                                              const std::string& what = "") {
  const auto path = std::filesystem::path(MEDUSA_SOURCE_DIR) / ".deps/models" / golden.model;
  if (!std::filesystem::exists(path))
    throw UserError(path.string() +
                    ": no such file, expected the model; run tools/get_demo_model.sh" + what);
  return path;
}

/// Expects every position's logits to agree with the golden ones.
/// @param logits  [T, V] float32.
inline void expect_golden(const GoldenNumbers& golden, const at::Tensor& logits) {
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
inline at::Tensor run_golden(const GoldenNumbers& golden, Llama& model) {
  const auto num_tokens = static_cast<int64_t>(golden.tokens.size());
  KvCache cache = model.make_cache(1, num_tokens);
  const Segment text{cache.open(), golden.tokens, {}};
  const at::Tensor hidden = model.forward(std::span(&text, 1), cache).clone();  // [T, H]
  return model.logits(hidden);
}

/// The whole model in float32 gives the golden logits.
inline void expect_golden_model(const GoldenNumbers& golden, const std::filesystem::path& path) {
  Llama model(load_weights(path, at::kFloat, at::kCPU));
  ASSERT_EQ(model.weights().fingerprint, "sha256:" + golden.model_sha256);
  const at::Tensor logits = run_golden(golden, model);
  ASSERT_EQ(logits.sizes(), (at::IntArrayRef{static_cast<int64_t>(golden.tokens.size()),
                                             model.config().vocab_size}));
  expect_golden(golden, logits);
}

}  // namespace medusa
