#include "infer/rules/typical_rule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/chi_square.h"

namespace medusa {
namespace {

using Row = std::vector<double>;  // probabilities

const SamplingConfig kCold;
const TypicalConfig kPaper;  // ε 0.09, δ 0.3

/// [N, V] logits of which softmax gives these rows.
at::Tensor logits_of(const std::vector<Row>& rows) {
  std::vector<at::Tensor> out;
  for (const Row& row : rows) out.push_back(at::tensor(row).log().to(at::kFloat));
  return at::stack(out);
}

Acceptance accept(const CandidateTree& tree, const std::vector<Row>& rows,
                  const TypicalConfig& config = kPaper) {
  return TypicalRule(config, kCold).accept(tree, logits_of(rows), 10, Random(1));
}

Row uniform(size_t size) { return Row(size, 1.0 / static_cast<double>(size)); }

TEST(TypicalRule, ACandidateStandsWhenItsProbabilityExceedsTheThreshold) {
  struct Case {
    const char* why;
    Row row;
    TokenId token;
    TypicalConfig config;
    bool stands;
  };
  const Row spread{0.5, 0.3, 0.15, 0.05};  // exp(-H) = 0.319: δ · exp(-H) = 0.0957
  const Row peaked{0.95, 0.03, 0.02};      // exp(-H) = 0.793: δ · exp(-H) = 0.238
  const std::vector<Case> cases{
      {"0.5 > 0.09", spread, 0, kPaper, true},
      {"0.15 > 0.09", spread, 2, kPaper, true},
      {"0.05 < 0.09", spread, 3, kPaper, false},
      {"0.95 > 0.09", peaked, 0, kPaper, true},
      {"0.03 < 0.09", peaked, 1, kPaper, false},
      {"1/16 > 0.3 / 16, though below ε", uniform(16), 7, kPaper, true},
      {"1/16 > 0.9 / 16", uniform(16), 7, {0.09, 0.9}, true},
      {"0.15 < 0.16 = ε", spread, 2, {0.16, 1}, false},
      {"0.15 > 0.14 = ε", spread, 2, {0.14, 1}, true},
      {"0.15 < 0.5 · 0.319", spread, 2, {0.9, 0.5}, false},
      {"0.15 > 0.45 · 0.319", spread, 2, {0.9, 0.45}, true},
      {"0.03 < 0.05 · 0.793", peaked, 1, {0.9, 0.05}, false},
      {"0.03 > 0.03 · 0.793", peaked, 1, {0.9, 0.03}, true},
  };
  for (const Case& each : cases) {
    const CandidateTree tree{{0, each.token}, {-1, 0}, 2, {}};
    const Acceptance out = accept(tree, {each.row, each.row}, each.config);
    EXPECT_EQ(!out.path.empty(), each.stands) << each.why;
    EXPECT_EQ(out.next, 0) << each.why;
  }
}

TEST(TypicalRule, ATemperatureTooSmallToDivideByAcceptsTheMostProbableToken) {
  const Row row{0.2, 0.5, 0.3};
  const CandidateTree tree{{0, 0, 1, 2}, {-1, 0, 0, 0}, 4, {}};
  for (const double temperature : {1e-30, 1e-45, 1e-300}) {
    const Acceptance out = TypicalRule(kPaper, {.temperature = temperature})
                               .accept(tree, logits_of(std::vector<Row>(4, row)), 10, Random(1));
    EXPECT_EQ(out.path, (std::vector<int32_t>{2})) << temperature;
    EXPECT_EQ(out.next, 1) << temperature;
  }
}

TEST(TypicalRule, TheLongestStandingPathWins) {
  const Row row{0.5, 0.3, 0.15, 0.05};
  //  root ── 1: 0 (0.5)
  //     ├─── 2: 1 (0.3) ── 4: 2 (0.15)
  //     └─── 3: 3 (0.05, falls) ── 5: 0 ── 6: 0
  const CandidateTree tree{{0, 0, 1, 3, 2, 0, 0}, {-1, 0, 0, 0, 2, 3, 5}, 7, {}};
  const Acceptance out = accept(tree, std::vector<Row>(7, row));
  EXPECT_EQ(out.path, (std::vector<int32_t>{2, 4}));
  EXPECT_EQ(out.next, 0);
}

TEST(TypicalRule, AmongPathsOfOneLengthTheMoreProbableWins) {
  const Row row{0.5, 0.3, 0.15, 0.05};
  const CandidateTree siblings{{0, 2, 0, 1}, {-1, 0, 0, 0}, 4, {}};
  EXPECT_EQ(accept(siblings, std::vector<Row>(4, row)).path, (std::vector<int32_t>{2}));
  // The whole path counts: 0.3 · 0.5 before 0.5 · 0.15.
  const CandidateTree paths{{0, 0, 1, 2, 0}, {-1, 0, 0, 1, 2}, 5, {}};
  EXPECT_EQ(accept(paths, std::vector<Row>(5, row)).path, (std::vector<int32_t>{2, 4}));
  const CandidateTree duplicates{{0, 1, 1}, {-1, 0, 0}, 3, {}};
  EXPECT_EQ(accept(duplicates, std::vector<Row>(3, row)).path, (std::vector<int32_t>{1}))
      << "the first";
}

TEST(TypicalRule, NodesBehindNumVerifyAreNotCandidates) {
  const Row row{0.5, 0.5};
  const CandidateTree tree{{0, 0, 1}, {-1, 0, 1}, 2, {}};
  EXPECT_EQ(accept(tree, std::vector<Row>(3, row)).path, (std::vector<int32_t>{1}));
}

TEST(TypicalRule, TheThresholdIsUnderTheTemperature) {
  // p = 0.1 at temperature 1; its square root, normalized, at temperature 2: 0.25.
  const CandidateTree tree{{0, 1}, {-1, 0}, 2, {}};
  const std::vector<Row> rows(2, Row{0.9, 0.1});
  const TypicalConfig config{0.2, 1};
  const auto path = [&](double temperature) {
    const TypicalRule rule(config, {.temperature = temperature});
    return rule.accept(tree, logits_of(rows), 10, Random(1)).path;
  };
  EXPECT_TRUE(path(0).empty());
  EXPECT_TRUE(path(1).empty());
  EXPECT_EQ(path(2), (std::vector<int32_t>{1}));
}

TEST(TypicalRule, TheTokenAfterThePathIsTheMostProbableAtTemperatureZero) {
  const CandidateTree tree{{0, 0}, {-1, 0}, 2, {}};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Acceptance out =
        TypicalRule(kPaper, kCold)
            .accept(tree, logits_of({{0.9, 0.05, 0.05}, {0.3, 0.4, 0.3}}), 10, Random(seed));
    EXPECT_EQ(out.path, (std::vector<int32_t>{1}));
    EXPECT_EQ(out.next, 1);
  }
}

TEST(TypicalRule, TheTokenAfterThePathIsSampledAboveTemperatureZero) {
  const CandidateTree tree{{0, 0}, {-1, 0}, 2, {}};
  const at::Tensor logits = logits_of({{0.9, 0.05, 0.05}, {0.2, 0.5, 0.3}});
  const SamplingConfig warm{.temperature = 1};
  std::vector<int64_t> counts(3, 0);
  for (uint64_t seed = 0; seed < 10000; ++seed) {
    const Acceptance out = TypicalRule(kPaper, warm).accept(tree, logits, 10, Random(seed));
    ASSERT_EQ(out.path, (std::vector<int32_t>{1}));
    ++counts.at(static_cast<size_t>(out.next));
    const auto kept = target_distribution(logits_row(logits, 1), warm);
    EXPECT_EQ(out.next, draw(kept, Random(seed), RandomUse::Accept, 11));
  }
  EXPECT_GT(reference::chi_square_p(counts, {0.2, 0.5, 0.3}), 0.01);

  const SamplingConfig first_only{.temperature = 1, .top_k = 1};
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(TypicalRule(kPaper, first_only).accept(tree, logits, 10, Random(seed)).next, 1);
}

}  // namespace
}  // namespace medusa
