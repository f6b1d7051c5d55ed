// The parts the report is drawn from: ticks, tree layout, and the files it reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/random.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/tools/example_run.h"
#include "tools/report/axis.h"
#include "tools/report/svg_plot.h"
#include "tools/report/tree_picture.h"

namespace medusa {
namespace {

using Texts = std::vector<std::string>;

TEST(Axis, TicksAreRoundAndCoverTheData) {
  EXPECT_EQ(round_ticks(0, 122.5, 5).labels, (Texts{"0", "25", "50", "75", "100", "125"}));
  EXPECT_EQ(round_ticks(5.6, 8.0, 5).labels, (Texts{"5.5", "6.0", "6.5", "7.0", "7.5", "8.0"}));
  EXPECT_EQ(round_ticks(0, 1.1, 4).labels, (Texts{"0.0", "0.5", "1.0", "1.5"}));
  EXPECT_EQ(round_ticks(0, 1, 4).labels, (Texts{"0.00", "0.25", "0.50", "0.75", "1.00"}));
  EXPECT_EQ(round_ticks(-1, 1, 2).labels, (Texts{"-1", "0", "1"}));
}

TEST(Axis, OneValueGetsAnAxisAroundIt) {
  for (const double value : {0.0, 3.0, -2.5}) {
    const AxisTicks ticks = round_ticks(value, value, 5);
    EXPECT_LT(ticks.values.front(), value);
    EXPECT_GT(ticks.values.back(), value);
  }
}

TEST(Axis, CountsEndAtTheDataAndHaveNoFractions) {
  EXPECT_EQ(whole_ticks(1, 64, 3).labels, (Texts{"1", "25", "50", "64"}));
  EXPECT_EQ(whole_ticks(1, 3, 5).labels, (Texts{"1", "2", "3"}));
  EXPECT_EQ(whole_ticks(7, 7, 5).labels, (Texts{"7", "8"}));
}

TEST(Plot, WithoutAPointThereIsNoPicture) { EXPECT_EQ(draw_plot(Plot{}, 490, 300), ""); }

TEST(TreeLayout, NodesOfALevelAreApartAndParentsCentred) {
  const Random random(7);
  for (int64_t trial = 0; trial < 50; ++trial) {
    std::vector<int32_t> parents{-1}, depths{0};
    for (int32_t i = 1; i < 64; ++i) {
      const auto parent =
          static_cast<size_t>(random.uniform(RandomUse::Init, trial, static_cast<uint64_t>(i)) * i);
      parents.push_back(static_cast<int32_t>(parent));
      depths.push_back(depths[parent] + 1);
    }
    const TreeLayout layout = lay_out_tree(parents);
    for (size_t i = 0; i < parents.size(); ++i) {
      ASSERT_GE(layout.places[i], -1e-9);
      ASSERT_LE(layout.places[i], layout.extent);
      double first = INFINITY, last = -INFINITY;
      for (size_t j = 0; j < parents.size(); ++j) {
        if (j != i && depths[j] == depths[i]) {
          ASSERT_GE(std::abs(layout.places[i] - layout.places[j]), 1 - 1e-9);
        }
        if (parents[j] != static_cast<int32_t>(i)) continue;
        first = std::min(first, layout.places[j]);
        last = std::max(last, layout.places[j]);
      }
      if (first <= last) {
        ASSERT_NEAR(layout.places[i], (first + last) / 2, 1e-9);
      }
    }
  }
}

TEST(ReportedComparison, ReadsWhatCompareWrote) {
  const fixtures::TempFolder folder;
  write_file(folder / "c.json", fixtures::example_comparison());
  const ReportedComparison comparison = read_comparison(folder / "c.json");
  ASSERT_EQ(comparison.methods.size(), 3u);
  EXPECT_EQ(comparison.methods[0].name(), "plain");
  EXPECT_FALSE(comparison.methods[0].same_text);  // compared with itself: says nothing
  EXPECT_EQ(comparison.methods[1].name(), "medusa, greedy");
  EXPECT_EQ(comparison.methods[1].same_text, 12);
  EXPECT_EQ(comparison.methods[1].num_steps(), 500);
  ASSERT_EQ(comparison.methods[1].phase_ms.size(), 4u);
  EXPECT_DOUBLE_EQ(comparison.methods[1].phase_ms[0].second, 1.0);  // 0.5 s of 500 steps
  EXPECT_FALSE(comparison.methods[2].same_text);
  EXPECT_TRUE(comparison.methods[2].phase_ms.empty());
  EXPECT_EQ(comparison.machine, "Example CPU");
  EXPECT_EQ(comparison.date + comparison.version, "2026-11-25medusa 0.1.0");
  EXPECT_EQ(comparison.question, "Why?");
  ASSERT_EQ(comparison.answers.size(), 2u);
  EXPECT_EQ(comparison.answers[0].steps.size(), 2u);
  EXPECT_EQ(comparison.answers[1].method, "medusa, greedy");
  EXPECT_EQ(comparison.answers[1].seconds, 0.5);
  EXPECT_EQ(comparison.answers[1].steps[0].num_tokens, 2);
  EXPECT_EQ(comparison.answers[1].steps[0].text, "Because");
}

TEST(ReportedComparison, NamesTheMissingKey) {
  const fixtures::TempFolder folder;
  write_file(folder / "c.json", R"({"methods": [{"drafter": "none"}]})");
  const std::string text = fixtures::error_text([&] { read_comparison(folder / "c.json"); });
  EXPECT_EQ(text, (folder / "c.json").string() +
                      ": key 'rule' not found, expected the comparison "
                      "that medusa writes; run medusa generate --compare again");
}

TEST(TrainingCurve, ReadsReportsAndSkipsALineThatWasCutOff) {
  const fixtures::TempFolder folder;
  write_file(folder / "m.jsonl", fixtures::example_metrics() + R"({"kind":"train","st)");
  const TrainingCurve curve = read_training_curve(folder / "m.jsonl");
  ASSERT_EQ(curve.train.size(), 3u);
  ASSERT_EQ(curve.validation.size(), 1u);
  EXPECT_EQ(curve.train.back().step, 60);
  EXPECT_DOUBLE_EQ(curve.validation[0].loss, 7.25);
  EXPECT_EQ(curve.validation[0].head_top_1, (std::vector<double>{0.31, 0.21}));
}

TEST(TrainingCurve, ReadsWhatTheGuardOfAJointRunSaw) {
  const fixtures::TempFolder folder;
  write_file(
      folder / "m.jsonl",
      fixtures::example_metrics() +
          R"({"kind":"guard","step":50,"loss_nats":0,"top_1":[],"guard_kl_nats":0.02,)"
          R"("guard_perplexity":3.5,"guard_original_perplexity":3.4,"guard_greedy_match":0.75})"
          "\n");
  const TrainingCurve curve = read_training_curve(folder / "m.jsonl");
  EXPECT_EQ(curve.validation.size(), 1U) << "it is no validation";
  ASSERT_EQ(curve.guard.size(), 1U);
  EXPECT_EQ(curve.guard[0].step, 50);
  EXPECT_EQ(curve.guard[0].kl, 0.02);
  EXPECT_EQ(curve.guard[0].perplexity, 3.5);
  EXPECT_EQ(curve.guard[0].greedy_match, 0.75);
}

TEST(TrainingCurve, NamesTheLineThatIsNotAReport) {
  const fixtures::TempFolder folder;
  write_file(folder / "m.jsonl", fixtures::example_metrics() + "{}\n");
  EXPECT_EQ(fixtures::error_text([&] { read_training_curve(folder / "m.jsonl"); }),
            (folder / "m.jsonl").string() +
                ":5: key 'step' not found, expected a report of "
                "medusa train; remove the line or train again");
}

}  // namespace
}  // namespace medusa
