#include "tools/measure/dtype_quality.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace medusa {
namespace {

/// Logits whose softmax these are.
at::Tensor rows(const std::vector<std::vector<double>>& probabilities) {
  std::vector<at::Tensor> out;
  for (const auto& row : probabilities) out.push_back(at::tensor(row, at::kDouble).log());
  return at::stack(out);
}

TEST(LogitDistance, IsThatOfTheDistributions) {
  LogitDistance distance;
  distance.begin_answer();
  const std::vector<TokenId> tokens{0, 1};
  distance.add(rows({{0.5, 0.25, 0.25}, {0.2, 0.6, 0.2}}),
               rows({{0.25, 0.5, 0.25}, {0.1, 0.8, 0.1}}), tokens);
  const double first = 0.5 * std::log(2) - 0.25 * std::log(2);
  const double second = 0.4 * std::log(2) + 0.6 * std::log(0.6 / 0.8);
  EXPECT_NEAR(distance.kl(), (first + second) / 2, 1e-12);
  EXPECT_NEAR(distance.reference_perplexity(), 1 / std::sqrt(0.5 * 0.6), 1e-12);
  EXPECT_NEAR(distance.perplexity(), 1 / std::sqrt(0.25 * 0.8), 1e-12);
  EXPECT_EQ(distance.positions(), 2);
  EXPECT_EQ(distance.same_token(), 0.5);
}

TEST(LogitDistance, ATextPartsAtItsFirstOtherToken) {
  LogitDistance distance;
  const at::Tensor reference = rows({{0.6, 0.4}}), same = rows({{0.7, 0.3}}),
                   other = rows({{0.3, 0.7}}), sure = rows({{0.9, 0.1}});
  const std::vector<TokenId> token{0};
  distance.begin_answer();  // two passes
  distance.add(reference, same, token);
  distance.add(reference, same, token);
  distance.begin_answer();
  distance.add(reference, same, token);
  distance.add(reference, other, token);
  distance.add(sure, other, token);  // they have parted, this is not where
  distance.begin_answer();
  distance.add(sure, other, token);
  EXPECT_EQ(distance.answers(), 3);
  EXPECT_EQ(distance.same_texts(), 1);
  ASSERT_EQ(distance.gaps().size(), 2);
  EXPECT_NEAR(distance.gaps()[0], std::log(0.6 / 0.4), 1e-12);
  EXPECT_NEAR(distance.gaps()[1], std::log(9), 1e-12);
  EXPECT_EQ(distance.same_token(), 3.0 / 6);
}

TEST(DtypeQuality, TellsWhyADtypeCannotRun) {
  DtypeQuality row;
  row.dtype = "stored";
  row.cannot_run = "no blocks";
  const DtypeComparison comparison{.rows = {row}};
  const std::string text = dtype_quality_text(comparison);
  EXPECT_NE(text.find("stored      cannot run: no blocks\n"), std::string::npos);
  EXPECT_EQ(text.find("interrupted"), std::string::npos);
  EXPECT_EQ(dtype_quality_json(comparison).dump(),
            R"({"dtypes":[{"dtype":"stored","cannot_run":"no blocks"}],"complete":true})");
}

TEST(DtypeQuality, SaysWhenItWasCutShort) {
  const DtypeComparison comparison{.rows = {}, .complete = false};
  EXPECT_NE(dtype_quality_text(comparison).find("interrupted: only the answers and dtypes so far"),
            std::string::npos);
  EXPECT_EQ(dtype_quality_json(comparison).at("complete"), false);
}

}  // namespace
}  // namespace medusa
