#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/tools/bench_samples.h"
#include "tools/bench/summary.h"

namespace medusa {
namespace {

using fixtures::make_sample;
using fixtures::SampleSpec;

TEST(BenchSummary, RowsHoldTheNumbersOfTheTotals) {
  // none: 10 tokens in 10 steps and 1 s, 20 in 20 and 2 s. fast: 10 in 5 steps and 1 s, 20 in 10
  // steps and 1 s: 15 tokens/s against 10, 0.133 s a step against 0.1.
  const std::vector<BenchSample> samples = {
      make_sample({.question = 0, .tokens = 10, .steps = 10, .seconds = 1}),
      make_sample({.method = "fast", .question = 0, .tokens = 10, .steps = 5, .seconds = 1}),
      make_sample({.question = 1, .tokens = 20, .steps = 20, .seconds = 2}),
      make_sample({.method = "fast", .question = 1, .tokens = 20, .steps = 10, .seconds = 1})};
  const std::vector<BenchRow> rows = summarize(samples, 1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].baseline());
  EXPECT_DOUBLE_EQ(rows[0].tokens_per_s, 10);
  EXPECT_DOUBLE_EQ(rows[0].speedup, 1);
  EXPECT_FALSE(rows[0].speedup_95);
  EXPECT_FALSE(rows[0].same_text);  // compared with itself it says nothing

  const BenchRow& fast = rows[1];
  EXPECT_EQ(fast.method, "fast");
  EXPECT_EQ(fast.rule, "greedy");
  EXPECT_EQ(fast.category, "");
  EXPECT_EQ(fast.num_questions, 2);
  EXPECT_DOUBLE_EQ(fast.tokens_per_s, 15);
  EXPECT_DOUBLE_EQ(fast.tokens_per_step, 2);
  EXPECT_NEAR(fast.step_overhead, 4.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(fast.speedup, 1.5);
  EXPECT_NEAR(fast.speedup, fast.tokens_per_step / fast.step_overhead, 1e-12);
  ASSERT_TRUE(fast.speedup_95);  // of two questions: either one twice, or both
  EXPECT_DOUBLE_EQ(fast.speedup_95->low, 1);
  EXPECT_DOUBLE_EQ(fast.speedup_95->high, 2);
  EXPECT_EQ(fast.same_text, 2);
  EXPECT_EQ(fast.emitted_per_step, (std::vector<int64_t>{0, 0, 15}));
  EXPECT_EQ(fast.num_steps(), 15);
  EXPECT_NEAR(fast.step_total_ms(), 2000.0 / 15, 1e-9);
  EXPECT_NEAR(fast.step_ms[1], 1400.0 / 15, 1e-9);  // verify: seven tenths
  EXPECT_DOUBLE_EQ(fast.prefill_ms, 250);
  EXPECT_EQ(fast.peak_bytes, 1001);
}

TEST(BenchSummary, OfRepeatsTheMiddleOneCounts) {
  std::vector<BenchSample> samples;
  const std::vector<double> plain_s = {9, 1, 2}, fast_s = {0.5, 1, 40};
  for (size_t i = 0; i < 3; ++i) {
    const auto repeat = static_cast<int64_t>(i);
    samples.push_back(make_sample({.repeat = repeat, .seconds = plain_s[i]}));
    samples.push_back(make_sample({.method = "fast", .repeat = repeat, .seconds = fast_s[i]}));
  }
  const std::vector<BenchRow> rows = summarize(samples, 1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[0].tokens_per_s, 5);
  EXPECT_DOUBLE_EQ(rows[1].tokens_per_s, 10);
  EXPECT_DOUBLE_EQ(rows[1].speedup, 2);
  EXPECT_EQ(rows[1].num_questions, 1);
  EXPECT_EQ(rows[1].num_samples, 3);
}

TEST(BenchSummary, OneRepeatThatDiffersIsNotTheSameText) {
  std::vector<BenchSample> samples;
  for (int64_t repeat = 0; repeat < 3; ++repeat)
    for (int64_t question = 0; question < 2; ++question) {
      samples.push_back(make_sample({.question = question, .repeat = repeat}));
      const bool differs = question == 1 && repeat == 2;
      samples.push_back(make_sample({.method = "fast",
                                     .question = question,
                                     .repeat = repeat,
                                     .first_token = differs ? 7 : 0}));
    }
  EXPECT_EQ(summarize(samples, 1)[1].same_text, 1);
  for (BenchSample& sample : samples) sample.same_text = false;  // a rule that promises nothing
  EXPECT_FALSE(summarize(samples, 1)[1].same_text);
}

TEST(BenchSummary, LaterTurnsCountAsWell) {
  BenchSample plain = make_sample({}), fast = make_sample({.method = "fast", .steps = 5});
  plain.answers.push_back(make_sample({.tokens = 6, .steps = 6}).answers[0]);
  fast.answers.push_back(make_sample({.tokens = 6, .steps = 6}).answers[0]);
  const BenchRow same = summarize(std::vector{plain, fast}, 1)[1];
  EXPECT_EQ(same.same_text, 1);
  EXPECT_DOUBLE_EQ(same.tokens_per_step, 16.0 / 11);
  EXPECT_DOUBLE_EQ(same.tokens_per_s, 8);
  fast.answers.pop_back();  // its conversation ended early
  EXPECT_EQ(summarize(std::vector{plain, fast}, 1)[1].same_text, 0);
}

TEST(BenchSummary, CategoriesComeInTheOrderOfTheFileAndAllQuestionsLast) {
  std::vector<BenchSample> samples;
  const std::vector<std::string> categories = {"writing", "coding", "writing"};
  for (int64_t i = 0; i < 3; ++i)
    for (const char* method : {kBaseline, "fast"})
      samples.push_back(make_sample({.method = method,
                                     .question = i,
                                     .category = categories[static_cast<size_t>(i)],
                                     .temperature = 0.5}));
  std::vector<std::string> seen;
  for (const BenchRow& row : summarize(samples, 1))
    seen.push_back(row.category + ":" + row.method + ":" + std::to_string(row.num_questions));
  EXPECT_EQ(seen, (std::vector<std::string>{"writing:none:2", "writing:fast:2", "coding:none:1",
                                            "coding:fast:1", ":none:3", ":fast:3"}));
}

TEST(BenchSummary, AMethodIsComparedWithTheBaselineOfItsOwnRun) {
  // The machine was twice as fast in run 2.
  const std::vector<BenchSample> samples = {make_sample({.run = 1, .seconds = 4}),
                                            make_sample({.method = "old", .run = 1, .seconds = 2}),
                                            make_sample({.run = 2, .seconds = 2}),
                                            make_sample({.method = "new", .run = 2, .seconds = 2})};
  const std::vector<BenchRow> rows = summarize(samples, 1);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_DOUBLE_EQ(rows[0].tokens_per_s, 5);  // none: of the newest run
  EXPECT_DOUBLE_EQ(rows[1].speedup, 2);
  EXPECT_DOUBLE_EQ(rows[2].speedup, 1);
}

TEST(BenchSummary, TheRunThatAnsweredMostQuestionsCounts) {
  std::vector<BenchSample> samples;
  for (const auto& [run, questions] : {std::pair<int64_t, int64_t>{1, 3}, {2, 1}, {3, 3}, {4, 2}})
    for (int64_t question = 0; question < questions; ++question)
      for (const char* method : {kBaseline, "fast"})
        samples.push_back(make_sample({.method = method,
                                       .question = question,
                                       .run = run,
                                       .seconds = static_cast<double>(run)}));
  const std::vector<BenchRow> rows = summarize(samples, 1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].num_questions, 3);
  EXPECT_DOUBLE_EQ(rows[1].tokens_per_s, 10.0 / 3);  // of run 3
}

TEST(BenchSummary, ANewRunReplacesWhatItMeasuredAgain) {
  const std::vector<BenchSample> earlier = {make_sample({.run = 1}),
                                            make_sample({.method = "a", .run = 1}),
                                            make_sample({.method = "b", .run = 1})};
  const auto kept = [&](const std::vector<BenchSample>& newer) {
    std::string text;
    for (const BenchSample& sample : without_replaced(earlier, newer)) text += sample.method + " ";
    return text;
  };
  EXPECT_EQ(kept({}), "none a b ");
  EXPECT_EQ(kept({make_sample({.run = 2}), make_sample({.method = "a", .run = 2})}), "none b ");
  EXPECT_EQ(kept({make_sample({.run = 2}), make_sample({.method = "a", .run = 2}),
                  make_sample({.method = "b", .run = 2})}),
            "");
  EXPECT_EQ(kept({make_sample({.run = 2, .temperature = 0.7})}), "none a b ");
  BenchSample other_rule = make_sample({.method = "a", .run = 2});
  other_rule.rule = "typical";
  EXPECT_EQ(kept({make_sample({.run = 2}), other_rule}), "none a b ");
}

TEST(BenchSummary, EachRuleHasItsRow) {
  std::vector<BenchSample> samples{make_sample({.temperature = 0.7})};
  for (const char* rule : {"typical", "rejection"}) {
    samples.push_back(make_sample({.method = "a", .temperature = 0.7}));
    samples.back().rule = rule;
  }
  const std::vector<BenchRow> rows = summarize(samples, 1);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].rule, "typical");
  EXPECT_EQ(rows[2].rule, "rejection");
}

TEST(BenchSamples, AreReadAsTheyWereWritten) {
  const fixtures::TempFolder folder;
  BenchSample sample = make_sample({.method = "fast", .question = 3, .category = "a \"b\"\n"});
  sample.answers[0].text = "größer\n\xC3";  // half a character at the end
  sample.answers.push_back(make_sample({.tokens = 3, .steps = 2}).answers[0]);
  write_samples(folder / "s.jsonl", {sample, make_sample({})});
  const std::vector<BenchSample> back = read_samples(folder / "s.jsonl");
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].method, "fast");
  EXPECT_EQ(back[0].category, "a \"b\"\n");
  ASSERT_EQ(back[0].answers.size(), 2u);
  EXPECT_EQ(back[0].answers[0].text, "größer\n\uFFFD");
  EXPECT_EQ(back[0].answers[1].tokens, sample.answers[1].tokens);
  EXPECT_EQ(back[0].answers[1].parts_s, sample.answers[1].parts_s);
  EXPECT_EQ(back[0].decode_s(), sample.decode_s());
  EXPECT_EQ(sample_line(back[1]), sample_line(make_sample({})));
}

TEST(BenchSamples, NameTheLineThatIsNone) {
  const fixtures::TempFolder folder;
  write_file(folder / "s.jsonl", sample_line(make_sample({})) + "\n{\"run\": 1}\n");
  EXPECT_EQ(fixtures::error_text([&] { read_samples(folder / "s.jsonl"); }),
            (folder / "s.jsonl").string() +
                ":2: key 'checksum' not found, expected an answer "
                "that medusa bench wrote; remove the file and bench.json, or give another folder "
                "with --out");
}

/// Answers are added up with those of later runs, so a wrong digit would become a wrong table.
TEST(BenchSamples, AnAlteredLineIsRefused) {
  const fixtures::TempFolder folder;
  const std::string line = sample_line(make_sample({}));
  for (size_t byte = 0; byte < line.size(); ++byte) {
    std::string altered = line;
    altered[byte] = static_cast<char>(altered[byte] ^ 1);
    write_file(folder / "s.jsonl", altered + "\n");
    const std::string error =
        fixtures::error_text(folder, [&] { read_samples(folder / "s.jsonl"); });
    ASSERT_TRUE(error.starts_with("<>/s.jsonl:1: ")) << byte << ": " << altered;
  }
  std::string altered = line;
  altered.replace(altered.find("\"steps\":10"), 10, "\"steps\":11");
  write_file(folder / "s.jsonl", line + "\n" + altered + "\n");
  EXPECT_EQ(fixtures::error_text(folder, [&] { read_samples(folder / "s.jsonl"); }),
            "<>/s.jsonl:2: its contents are not those that its checksum says, expected an answer "
            "that medusa bench wrote; remove the file and bench.json, or give another folder with "
            "--out");
}

}  // namespace
}  // namespace medusa
