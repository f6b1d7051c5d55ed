// Samples -> the rows of the tables. No LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/bench/sample.h"
#include "runtime/measure/quantiles.h"
#include "tools/bench/statistics.h"

namespace medusa {

/// A method at a temperature, over the questions of a category or over all. Where a question was
/// repeated, its repeat with the middle decode time counts (middle_of()).
struct BenchRow {
  std::string method;
  std::string rule;
  double temperature = 0;
  std::string category;       // empty: all questions
  int64_t num_questions = 0;  // that both the method and the baseline answered
  int64_t num_samples = 0;    // repeats counted one by one
  double tokens_per_s = 0;    // emitted / decode seconds; prefill is not in it
  double tokens_per_step = 0;
  double step_overhead = 0;  // seconds per step / seconds per step of the baseline
  double speedup = 0;        // tokens_per_s / the baseline's
  std::optional<Interval> speedup_95;
  std::optional<int64_t> same_text;  // questions answered token for token as by the baseline, in
                                     // every repeat; of rules that promise it
  double prefill_ms = 0;             // mean per prompt
  std::array<double, kNumStepParts> step_ms{};  // mean of a step's parts, as kStepParts
  std::vector<int64_t> emitted_per_step;        // [n] = steps that emitted n tokens
  int64_t peak_bytes = 0;                       // most of all samples; 0: not known

  bool baseline() const { return method == kBaseline; }
  double step_total_ms() const;
  int64_t num_steps() const;
};

/// Rows by temperature, then category (in the order of the file, all questions last, and alone if
/// there is one category only), then method (the baseline first) and rule. Of a method that was
/// measured by the same rule in several runs the one that answered the most questions counts, of
/// equal ones the newest, against the baseline of that same run: an interrupted run does not hide
/// an earlier whole one.
/// @param seed  of the bootstrap.
std::vector<BenchRow> summarize(std::span<const BenchSample> samples, uint64_t seed);

/// The samples of earlier runs that still count beside those of a complete new one: all but those
/// of methods that the new run measured again by the same rule, and the baseline's as long as
/// somebody needs it.
std::vector<BenchSample> without_replaced(std::vector<BenchSample> earlier,
                                          std::span<const BenchSample> newer);

}  // namespace medusa
