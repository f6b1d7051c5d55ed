#include "base/fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/yaml_fields.h"
#include "tests/base/error_text.h"

namespace medusa {

enum class Schedule { Cosine, Constant };
template <>
struct EnumNames<Schedule> {
  static constexpr std::array<std::pair<const char*, Schedule>, 2> values = {
      {{"cosine", Schedule::Cosine}, {"constant", Schedule::Constant}}};
};

namespace {

struct OptimizerConfig {
  double learning_rate = 1e-3;
  int64_t warmup_steps = 40;
  bool fused = false;
  Schedule schedule = Schedule::Cosine;
  bool operator==(const OptimizerConfig&) const = default;

  template <typename Fields>
  void fields(Fields& f) {
    f("learning_rate", learning_rate, "AdamW peak step size", greater_than(0.0));
    f("warmup_steps", warmup_steps, "optimizer steps of linear warm-up", at_least<int64_t>(0));
    f("fused", fused, "use the fused kernel");
    f("schedule", schedule, "learning rate over time");
  }
  void validate() const {
    if (fused && warmup_steps == 7) throw UserError("fused cannot warm up for 7 steps");
  }
};

struct RunConfig {
  std::string name = "run";
  uint64_t seed = 0;
  std::optional<int64_t> top_k;
  std::vector<int32_t> sizes = {1, 2};
  std::vector<std::string> stop;
  OptimizerConfig optimizer;
  bool operator==(const RunConfig&) const = default;

  template <typename Fields>
  void fields(Fields& f) {
    f("name", name, "what the run is called");
    f("seed", seed, "of all random numbers");
    f("top_k", top_k, "tokens kept; all if not given", between<int64_t>(1, 100));
    f("sizes", sizes, "tree sizes tried", at_least(1));
    f("stop", stop, "texts that end an answer");
    f.section("optimizer", optimizer, "how weights change");
  }
  void validate() const {}
};

RunConfig read(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return read_config<RunConfig>(YamlFile::from_text(yaml, "run.yaml", overrides));
}

std::string error_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return fixtures::error_text([&] { read(yaml, overrides); });
}

/// The error of one key of the section 'optimizer', which then stands on line 2.
std::string optimizer_error(const std::string& line) {
  return error_of("optimizer:\n  " + line + "\n");
}

TEST(FieldReader, KeepsDefaultsOfAbsentKeys) {
  const RunConfig config = read("optimizer:\n  learning_rate: 5e-4\n");
  EXPECT_EQ(config.optimizer.learning_rate, 5e-4);
  EXPECT_EQ(config.optimizer.warmup_steps, 40);
  EXPECT_EQ(config.name, "run");
  EXPECT_EQ(read(""), RunConfig());
  EXPECT_EQ(read("optimizer:\n"), RunConfig());
}

TEST(FieldReader, ReadsEveryType) {
  const RunConfig config = read(
      "name: a b\nseed: 18446744073709551615\ntop_k: 7\nsizes: [4, 8]\nstop: [\"\\n\", no]\n"
      "optimizer: {learning_rate: 1e-3, warmup_steps: 0, fused: true, schedule: constant}\n");
  EXPECT_EQ(config.name, "a b");
  EXPECT_EQ(config.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(config.top_k, 7);
  EXPECT_EQ(config.sizes, (std::vector<int32_t>{4, 8}));
  EXPECT_EQ(config.stop, (std::vector<std::string>{"\n", "no"}));
  EXPECT_EQ(config.optimizer.schedule, Schedule::Constant);
  EXPECT_TRUE(config.optimizer.fused);
}

TEST(FieldReader, RejectsUnknownKeyAndSuggests) {
  EXPECT_EQ(error_of("seed: 1\nnmae: x\n"),
            "run.yaml:2: unknown key 'nmae' (did you mean 'name'?); correct or remove it");
  EXPECT_EQ(optimizer_error("learning_rte: 1e-3"),
            "run.yaml:2: unknown key 'learning_rte' in 'optimizer' (did you mean "
            "'learning_rate'?); correct or remove it");
  EXPECT_EQ(error_of("colour: red\n"), "run.yaml:1: unknown key 'colour'; correct or remove it");
  EXPECT_EQ(error_of("a; b: red\n"), "run.yaml:1: unknown key 'a; b'; correct or remove it");
  EXPECT_EQ(error_of("\"a\\nb\\tc\": red\n"),
            "run.yaml:1: unknown key 'a\\nb\\tc'; correct or remove it")
      << "a message is a line";
}

TEST(FieldReader, RejectsARepeatedKey) {
  EXPECT_EQ(error_of("seed: 1\nseed: 2\n"),
            "run.yaml:2: key 'seed' is given twice; correct or remove it");
}

TEST(FieldReader, RejectsValuesOutOfRange) {
  EXPECT_EQ(optimizer_error("learning_rate: -1"),
            "run.yaml:2: 'learning_rate' is -1, must be > 0; correct or remove it");
  EXPECT_EQ(optimizer_error("warmup_steps: -3"),
            "run.yaml:2: 'warmup_steps' is -3, must be >= 0; correct or remove it");
  EXPECT_EQ(error_of("top_k: 101\n"),
            "run.yaml:1: 'top_k' is 101, must be from 1 to 100; correct or remove it");
  EXPECT_EQ(error_of("sizes: [3, 0]\n"),
            "run.yaml:1: 'sizes' is 0, must be >= 1; correct or remove it");
}

TEST(FieldReader, RejectsWrongTypes) {
  EXPECT_EQ(optimizer_error("warmup_steps: 3.0"),
            "run.yaml:2: 'warmup_steps' is '3.0', must be a whole number; correct or remove it");
  EXPECT_EQ(optimizer_error("warmup_steps: 010"),
            "run.yaml:2: 'warmup_steps' is '010', must be a whole number; correct or remove it");
  EXPECT_EQ(optimizer_error("warmup_steps: -010"),
            "run.yaml:2: 'warmup_steps' is '-010', must be a whole number; correct or remove it");
  EXPECT_EQ(optimizer_error("warmup_steps: ''"),
            "run.yaml:2: 'warmup_steps' is '', must be a whole number; correct or remove it");
  EXPECT_EQ(optimizer_error("warmup_steps: 9223372036854775808"),
            "run.yaml:2: 'warmup_steps' is '9223372036854775808', must be a whole number; correct "
            "or remove it");
  EXPECT_EQ(optimizer_error("warmup_steps: 1000000000000"), "(no error)");
  EXPECT_EQ(optimizer_error("warmup_steps: 1000000000001"),
            "run.yaml:2: 'warmup_steps' is 1000000000001, must be at most 1000000000000 either "
            "way; correct or remove it");
  EXPECT_EQ(optimizer_error("learning_rate: .nan"),
            "run.yaml:2: 'learning_rate' is '.nan', must be a finite number; correct or remove it");
  EXPECT_EQ(optimizer_error("learning_rate: inf"),
            "run.yaml:2: 'learning_rate' is 'inf', must be a finite number; correct or remove it");
  EXPECT_EQ(optimizer_error("learning_rate: fast"),
            "run.yaml:2: 'learning_rate' is 'fast', must be a finite number; correct or remove it");
  EXPECT_EQ(optimizer_error("fused: yes"),
            "run.yaml:2: 'fused' is 'yes', must be true or false; correct or remove it");
  EXPECT_EQ(
      optimizer_error("schedule: linear"),
      "run.yaml:2: 'schedule' is 'linear', must be one of cosine | constant; correct or remove it");
  EXPECT_EQ(error_of("seed: -1\n"),
            "run.yaml:1: 'seed' is '-1', must be a whole number; correct or remove it");
  EXPECT_EQ(error_of("seed: [1]\n"),
            "run.yaml:1: 'seed' must be a single value; correct or remove it");
  EXPECT_EQ(error_of("seed: ~\n"),
            "run.yaml:1: 'seed' must be a single value; correct or remove it");
  EXPECT_EQ(error_of("sizes: 3\n"),
            "run.yaml:1: 'sizes' must be a list, like [a, b]; correct or remove it");
  EXPECT_EQ(error_of("sizes: [1, two]\n"),
            "run.yaml:1: 'sizes' is 'two', must be a whole number; correct or remove it");
}

TEST(FieldReader, RejectsAScalarWhereAMappingIsExpected) {
  EXPECT_EQ(error_of("3\n"),
            "run.yaml:1: expected a mapping of keys to values; correct or remove it");
  EXPECT_EQ(error_of("seed: 1\noptimizer: adam\n"),
            "run.yaml:2: expected a mapping of keys to values; correct or remove it");
}

TEST(FieldReader, AcceptsZeroAndHundred) {
  EXPECT_EQ(read("optimizer: {warmup_steps: 0}").optimizer.warmup_steps, 0);
  EXPECT_EQ(read("optimizer: {warmup_steps: 100}").optimizer.warmup_steps, 100);
}

TEST(FieldReader, NullClearsAnOptional) {
  EXPECT_EQ(read("top_k: null").top_k, std::nullopt);
  EXPECT_EQ(read("top_k: 5", {"top_k=null"}).top_k, std::nullopt);
}

TEST(FieldReader, RunsTheRulesBetweenFields) {
  EXPECT_EQ(error_of("optimizer: {fused: true, warmup_steps: 7}"),
            "fused cannot warm up for 7 steps");
}

TEST(FieldReader, AnOverrideWinsAndIsNamedInErrors) {
  const std::string yaml = "optimizer:\n  warmup_steps: 1\n";
  EXPECT_EQ(read(yaml, {"optimizer.warmup_steps=2"}).optimizer.warmup_steps, 2);
  EXPECT_EQ(read("", {"optimizer.warmup_steps=2", "sizes=[9]"}).sizes, (std::vector<int32_t>{9}));
  EXPECT_EQ(error_of(yaml, {"optimizer.warmup_steps=x"}),
            "--set optimizer.warmup_steps=x: 'warmup_steps' is 'x', must be a whole number; "
            "correct or remove it");
  EXPECT_EQ(error_of(yaml, {"optimizer.warm=2"}),
            "--set optimizer.warm=2: unknown key 'warm' in 'optimizer' (did you mean "
            "'warmup_steps'?); correct or remove it");
  EXPECT_EQ(error_of(yaml, {"optimizer={warmup_steps: 2, fused: 1}"}),
            "--set optimizer={warmup_steps: 2, fused: 1}: 'fused' is '1', must be true or false; "
            "correct or remove it");
}

TEST(FieldWriter, WhatItWritesReadsBackEqual) {
  RunConfig config;
  config.name = "null";
  config.seed = std::numeric_limits<uint64_t>::max();
  config.sizes = {};
  config.stop = {"", "a: b", "010", "~", "two\nlines", "- x", "grüß"};
  config.optimizer = {
      .learning_rate = 0.1 + 0.2, .warmup_steps = 3, .fused = true, .schedule = Schedule::Constant};
  for (const std::optional<int64_t> top_k : {std::optional<int64_t>(), std::optional<int64_t>(9)}) {
    config.top_k = top_k;
    EXPECT_EQ(read(write_config(config)), config) << write_config(config);
  }
}

TEST(FieldWriter, WritesEveryFieldInOrder) {
  EXPECT_EQ(write_config(RunConfig()),
            "name: run\nseed: 0\ntop_k: ~\nsizes: [1, 2]\nstop: []\noptimizer:\n"
            "  learning_rate: 0.001\n  warmup_steps: 40\n  fused: false\n  schedule: cosine\n");
}

TEST(FieldLister, ListsKeysDefaultsRangesAndHelp) {
  RunConfig config;
  FieldLister lister("train");
  config.fields(lister);
  std::string text;
  for (const auto& [key, value, allowed, help, decides] : lister.lines()) {
    text += key + " = " + value + " (" + allowed + ") " + help + "\n";
    EXPECT_TRUE(decides) << key;
  }
  EXPECT_EQ(text,
            "train.name = run () what the run is called\n"
            "train.seed = 0 () of all random numbers\n"
            "train.top_k = null (from 1 to 100) tokens kept; all if not given\n"
            "train.sizes = [1, 2] (>= 1) tree sizes tried\n"
            "train.stop = [] () texts that end an answer\n"
            "train.optimizer.learning_rate = 0.001 (> 0) AdamW peak step size\n"
            "train.optimizer.warmup_steps = 40 (>= 0) optimizer steps of linear warm-up\n"
            "train.optimizer.fused = false () use the fused kernel\n"
            "train.optimizer.schedule = cosine (cosine | constant) learning rate over time\n");
}

struct MarkedConfig {
  bool low_rank = false;
  int64_t rank = 8;
  int64_t report_every = 20;

  template <typename Fields>
  void fields(Fields& f) {
    f("low_rank", low_rank, "");
    f("rank", rank, "", at_least<int64_t>(1)).decides_if(low_rank);
    f("report_every", report_every, "").cosmetic();
  }
  void validate() const {}
};

TEST(FieldMark, SaysWhatDecidesNothing) {
  const auto deciding = [](MarkedConfig config) {
    FieldLister lister;
    config.fields(lister);
    std::string keys;
    for (const FieldHelp& line : lister.lines())
      if (line.decides) keys += line.key + " ";
    return keys;
  };
  EXPECT_EQ(deciding({}), "low_rank ");
  EXPECT_EQ(deciding({.low_rank = true}), "low_rank rank ");
  // Reading and writing know nothing of marks.
  EXPECT_EQ(write_config(MarkedConfig()), "low_rank: false\nrank: 8\nreport_every: 20\n");
  EXPECT_EQ(read_config<MarkedConfig>(YamlFile::from_text("rank: 9\n", "a.yaml")).rank, 9);
}

struct CheckedConfig {
  int64_t rank = 8;
  std::optional<double> share{};
  std::vector<int64_t> sizes{};
  MarkedConfig inner{};

  template <typename Fields>
  void fields(Fields& f) {
    f("rank", rank, "", at_least<int64_t>(1));
    f("share", share, "", between(0.0, 1.0));
    f("sizes", sizes, "", at_least<int64_t>(2));
    f.section("inner", inner, "");
  }
  void validate() const {
    if (rank == 99) throw UserError("rank is 99");
  }
};

TEST(CheckConfig, HoldsAStructThatCodeFilledToItsRules) {
  const auto refusal = [](const CheckedConfig& config) {
    return fixtures::error_text([&] { check_config(config, "train"); });
  };
  EXPECT_EQ(refusal({}), "(no error)");
  EXPECT_EQ(refusal({.rank = 0}), "train.rank is 0, expected >= 1; correct it");
  EXPECT_EQ(refusal({.share = 1.5}), "train.share is 1.5, expected from 0 to 1; correct it");
  EXPECT_EQ(refusal({.share = std::numeric_limits<double>::quiet_NaN()}).find("train.share is "),
            0U);
  EXPECT_EQ(refusal({.share = 0.5, .sizes = {4, 1}}),
            "train.sizes is 1, expected >= 2; correct it");
  EXPECT_EQ(refusal({.inner = {.rank = -3}}), "train.inner.rank is -3, expected >= 1; correct it");
  EXPECT_EQ(refusal({.rank = 99}), "rank is 99");
}

TEST(NearestWord, FindsSlipsButNotStrangers) {
  const std::vector<std::string> known = {"epochs", "seed", "learning_rate"};
  EXPECT_EQ(nearest_word("epoch", known), "epochs");
  EXPECT_EQ(nearest_word("sede", known), "seed");
  EXPECT_EQ(nearest_word("banana", known), "");
}

TEST(NearestWord, PrefersOneThatBeginsLikeIt) {
  const std::vector<std::string> known = {"--run", "--cut", "--output-size", "--output", "--on"};
  EXPECT_EQ(nearest_word("--out", known), "--output") << "not --cut, which is nearer";
  EXPECT_EQ(nearest_word("--output-s", known), "--output-size");
  EXPECT_EQ(nearest_word("--o", known), "--on") << "a letter says little; the nearest one";
  EXPECT_EQ(nearest_word("--", known), "--on");
  EXPECT_EQ(nearest_word("", known), "");
}

TEST(NumberText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(number_text(0.001), "0.001");
  EXPECT_EQ(number_text(40), "40");
  EXPECT_EQ(number_text(1e-5), "1e-05");
  EXPECT_EQ(number_text(0.1 + 0.2), "0.30000000000000004");
}

}  // namespace
}  // namespace medusa
