// The table, the page and the files of a bench.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/tools/bench_samples.h"
#include "tests/tools/expect_parts.h"
#include "tools/bench/result.h"
#include "tools/bench/result_folder.h"
#include "tools/report/interval_chart.h"

namespace medusa {
namespace {

using fixtures::make_sample;

/// Four questions of two categories, two methods beside plain decoding, two temperatures.
std::vector<BenchSample> example_samples() {
  std::vector<BenchSample> out;
  for (const double temperature : {0.0, 0.7})
    for (int64_t i = 0; i < 4; ++i) {
      const std::string category = i < 2 ? "writing" : "coding <&>";
      const auto add = [&](const std::string& method, int64_t steps, double seconds) {
        out.push_back(make_sample({.method = method,
                                   .question = i,
                                   .category = category,
                                   .tokens = 20 + i,
                                   .steps = steps,
                                   .seconds = seconds,
                                   .temperature = temperature}));
      };
      add(kBaseline, 20 + i, 2);
      add("medusa", 15 + i, 1.2 + 0.1 * static_cast<double>(i));
      add("prompt_lookup", 18 + i, 1.9 - 0.2 * static_cast<double>(i));
    }
  return out;
}

BenchResult example_result() {
  return {.conditions = {{"model", "sha256:4f0c"}, {"dtype", "bfloat16"}},
          .rows = summarize(example_samples(), 1),
          .failed = {{"draft_model", 0, "generate.draft_model: <not set>"}},
          .complete = true,
          .num_questions = 4,
          .repeats = 1,
          .machine = "Example CPU, 2 threads",
          .settings = "run: runs/demo\n"};
}

using fixtures::expect_parts;

TEST(BenchTable, ShowsEveryNumberOfARow) {
  const std::string text = bench_table(example_result());
  expect_parts(text, {"temperature 0\n", "temperature 0.7\n", "writing\n", "all questions\n",
                      "tokens of a step (%)", "time of a step (ms)", "(70.0 %)",
                      "draft_model at temperature 0 did not run: generate.draft_model: <not set>"});
  // 86 tokens in 5.4 s and 66 steps; none: 8 s and 86 steps. All four texts the same.
  expect_parts(text, {"medusa                     15.9         1.30      0.88      1.48",
                      "4 / 4      250        0\n"});
  EXPECT_EQ(text.find("interrupted"), std::string::npos);
}

TEST(BenchTable, SaysWhatIsPartial) {
  BenchResult result = example_result();
  result.complete = false;
  result.num_questions = 9;
  expect_parts(bench_table(result), {"partial: 4 of 9 questions", "interrupted: only the rounds"});
}

TEST(BenchTable, NamesTheRuleWhereItIsNotTheUsualOne) {
  BenchRow row;
  row.method = "medusa";
  row.rule = "typical";
  EXPECT_EQ(row_name(row), "medusa, typical");
  row.rule = "greedy";
  EXPECT_EQ(row_name(row), "medusa");
  row.temperature = 0.7;
  EXPECT_EQ(row_name(row), "medusa, greedy");
}

TEST(BenchTable, RepeatsAreThoseOfTheRows) {
  BenchResult result = example_result();
  result.repeats = 5;  // of the last run, of which no row is shown
  EXPECT_EQ(repeats_text(result), "1");
  for (BenchRow& row : result.rows)
    if (row.method == "medusa") row.num_samples *= 3;
  EXPECT_EQ(repeats_text(result), "1 to 3");
  expect_parts(bench_page(result), {"4 questions, 1 to 3 times;"});
  expect_parts(bench_markdown(result, {}), {"| repeats | 1 to 3 |"});
  result.rows.clear();
  EXPECT_EQ(repeats_text(result), "5");
}

TEST(BenchPage, HasPicturesAndEscapesWhatCameFromFiles) {
  const std::string page = bench_page(example_result());
  expect_parts(page, {"<svg", "Temperature 0.7", "Speed-up by category",
                      "Where a step&#39;s time goes", "coding &lt;&amp;&gt;",
                      "draft_model, temperature 0: generate.draft_model: "
                      "&lt;not set&gt;",
                      "sha256:4f0c", "4 / 4"});
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("coding <"), std::string::npos);
  EXPECT_EQ(page, bench_page(example_result()));
}

TEST(BenchPage, StandsWithoutAnythingMeasured) {
  expect_parts(bench_page(BenchResult{}), {"<h1>Decoding methods compared</h1>", "</html>"});
}

TEST(IntervalChart, ShowsNamesValuesAndIntervals) {
  const IntervalChart chart{
      .description = "speed",
      .x_label = "speed-up (×)",
      .rows = {{"fast <1>", {{"fast", 0, 1.5, std::pair(1.25, 2.0)}}},
               {"two", {{"a", 0, 0.8, std::nullopt}, {"b", 1, 1.1, std::pair(1.0, 1.2)}}}}};
  const std::string svg = draw_interval_chart(chart, 490);
  expect_parts(svg, {"fast &lt;1&gt;</text>", ">1.50</text>", "fast: 1.50 (1.25 to 2.00)</title>",
                     "a: 0.80</title>", "b: 1.10 (1.00 to 1.20)</title>", ">two</text>",
                     "speed-up (×)</text>"});
  EXPECT_EQ(svg.find(">1.10</text>"), std::string::npos);  // only a lone mark has its value there
  EXPECT_EQ(draw_interval_chart(IntervalChart{}, 490), "");
}

TEST(BenchFolder, KeepsEarlierMethodsUnderTheSameConditions) {
  const fixtures::TempFolder folder;
  const Conditions conditions = example_result().conditions;
  const BenchFolder first(folder / "out", conditions);
  EXPECT_EQ(first.next_run(), 1);
  first.write(example_result(), example_samples());
  const nlohmann::json written = nlohmann::json::parse(read_file(folder / "out/bench.json"));
  EXPECT_EQ(written.at("rows").size(), 18u);  // 2 temperatures × (2 categories + all) × 3
  EXPECT_EQ(written.at("rows").at(0).at("category"), "writing");
  EXPECT_EQ(written.at("failed").at(0).at("method"), "draft_model");

  const BenchFolder second(folder / "out", conditions);
  EXPECT_EQ(second.next_run(), 2);
  const std::vector<BenchSample> all =
      second.combined({make_sample({.method = "new", .run = 2})}, /*complete=*/true);
  EXPECT_EQ(all.size(), example_samples().size() + 1);
  EXPECT_EQ(all.back().method, "new");
}

// A run that was interrupted, or killed after it had saved once, took the place of an earlier whole
// one.
TEST(BenchFolder, AnInterruptedRunLeavesTheSamplesOfAnEarlierOne) {
  const fixtures::TempFolder folder;
  BenchResult result;
  result.conditions = {{"model", "a"}};
  const std::vector<BenchSample> whole{make_sample({.question = 0}), make_sample({.question = 1}),
                                       make_sample({.method = "fast", .question = 0}),
                                       make_sample({.method = "fast", .question = 1})};
  BenchFolder(folder.path(), result.conditions).write(result, whole);
  const BenchFolder second(folder.path(), result.conditions);
  const std::vector<BenchSample> partial{make_sample({.run = 2, .seconds = 9}),
                                         make_sample({.method = "fast", .run = 2, .seconds = 9})};
  second.write(result, second.combined(partial, /*complete=*/false));
  const BenchFolder third(folder.path(), result.conditions);
  EXPECT_EQ(third.next_run(), 3);
  EXPECT_EQ(third.combined({}, /*complete=*/false).size(), 6u);
  const std::vector<BenchSample> again{make_sample({.run = 3}),
                                       make_sample({.method = "fast", .run = 3})};
  EXPECT_EQ(third.combined(again, /*complete=*/true).size(), 2u);
}

TEST(BenchFolder, RefusesAnotherModel) {
  const fixtures::TempFolder folder;
  BenchResult result = example_result();
  BenchFolder(folder.path(), result.conditions).write(result, example_samples());
  result.conditions[0] = {"model", "sha256:0000"};
  EXPECT_EQ(fixtures::error_text([&] { BenchFolder(folder.path(), result.conditions); }),
            (folder / "bench.json").string() +
                ": measured with model sha256:4f0c, this run has sha256:0000, expected the same "
                "model for all that is compared in a folder; give another folder with --out, or "
                "leave out what was measured there with --fresh");
}

}  // namespace
}  // namespace medusa
