#include "tools/bench/summary.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "runtime/measure/quantiles.h"

namespace medusa {
namespace {

/// A row of the table, but for its category.
struct RowKey {
  double temperature = 0;
  std::string method;
  std::string rule;  // empty: the baseline's, which has one at each temperature

  auto operator<=>(const RowKey&) const = default;
};

RowKey row_of(const BenchSample& sample) {
  return {sample.temperature, sample.method, sample.method == kBaseline ? "" : sample.rule};
}

/// A row as it was measured in one run.
struct Key {
  RowKey row;
  int64_t run = 0;

  auto operator<=>(const Key&) const = default;
};

using ByQuestion = std::map<int64_t, std::vector<const BenchSample*>>;  // repeats of each question
using Groups = std::map<Key, ByQuestion>;

Groups group(std::span<const BenchSample> samples) {
  Groups out;
  for (const BenchSample& sample : samples)
    out[{row_of(sample), sample.run}][sample.question].push_back(&sample);
  return out;
}

const BenchSample& middle(const std::vector<const BenchSample*>& repeats) {
  std::vector<double> seconds;
  for (const BenchSample* sample : repeats) seconds.push_back(sample->decode_s());
  return *repeats[middle_of(seconds)];
}

bool same_tokens(const BenchSample& a, const BenchSample& b) {
  return std::equal(
      a.answers.begin(), a.answers.end(), b.answers.begin(), b.answers.end(),
      [](const AnswerRecord& x, const AnswerRecord& y) { return x.tokens == y.tokens; });
}

/// Plain decoding that is not the same itself in every repeat is the same as nobody.
bool same_in_every_repeat(const std::vector<const BenchSample*>& samples,
                          const std::vector<const BenchSample*>& baseline) {
  return std::all_of(samples.begin(), samples.end(), [&](const BenchSample* sample) {
    return std::all_of(baseline.begin(), baseline.end(),
                       [&](const BenchSample* plain) { return same_tokens(*sample, *plain); });
  });
}

/// Sums over the questions of a row.
struct Totals {
  std::vector<PairedWork> work;
  double steps = 0, baseline_steps = 0;
  double prefill_s = 0, prompts = 0;
  int64_t same_text = 0;
};

void add_answers(BenchRow& row, Totals& totals, const BenchSample& sample) {
  for (const AnswerRecord& answer : sample.answers) {
    totals.prefill_s += answer.prefill_s;
    ++totals.prompts;
    for (size_t part = 0; part < kNumStepParts; ++part)
      row.step_ms[part] += 1000 * answer.parts_s[part];  // divided by the steps at the end
    auto& histogram = row.emitted_per_step;
    histogram.resize(std::max(histogram.size(), answer.emitted_per_step.size()));
    for (size_t n = 0; n < answer.emitted_per_step.size(); ++n)
      histogram[n] += answer.emitted_per_step[n];
  }
}

void add_question(BenchRow& row, Totals& totals, const std::vector<const BenchSample*>& samples,
                  const std::vector<const BenchSample*>& baseline) {
  const BenchSample &sample = middle(samples), &plain = middle(baseline);
  totals.work.push_back({static_cast<double>(sample.emitted()), sample.decode_s(),
                         static_cast<double>(plain.emitted()), plain.decode_s()});
  totals.steps += static_cast<double>(sample.steps());
  totals.baseline_steps += static_cast<double>(plain.steps());
  totals.same_text += same_in_every_repeat(samples, baseline) ? 1 : 0;
  add_answers(row, totals, sample);
  ++row.num_questions;
  row.num_samples += static_cast<int64_t>(samples.size());
  for (const BenchSample* each : samples)
    row.peak_bytes = std::max(row.peak_bytes, each->peak_bytes);
}

/// @returns  a row without questions if the two share none of this category.
BenchRow make_row(const Key& key, const ByQuestion& method, const ByQuestion& baseline,
                  const std::string& category, uint64_t seed) {
  BenchRow row;
  row.method = key.row.method;
  row.temperature = key.row.temperature;
  row.category = category;
  Totals totals;
  bool promised = true;
  for (const auto& [question, samples] : method) {
    const auto plain = baseline.find(question);
    if (plain == baseline.end()) continue;
    if (!category.empty() && samples.front()->category != category) continue;
    add_question(row, totals, samples, plain->second);
    row.rule = samples.front()->rule;
    promised = promised && samples.front()->same_text;
  }
  if (row.num_questions == 0) return row;
  PairedWork sum;
  for (const PairedWork& each : totals.work) {
    sum.tokens += each.tokens;
    sum.seconds += each.seconds;
    sum.baseline_seconds += each.baseline_seconds;
  }
  row.tokens_per_s = sum.tokens / sum.seconds;
  row.tokens_per_step = sum.tokens / totals.steps;
  row.step_overhead = sum.seconds / totals.steps / (sum.baseline_seconds / totals.baseline_steps);
  row.speedup = speedup(totals.work);
  row.prefill_ms = 1000 * totals.prefill_s / totals.prompts;
  for (double& ms : row.step_ms) ms /= totals.steps;
  if (row.baseline()) return row;  // compared with itself it says nothing
  row.speedup_95 = speedup_interval(totals.work, seed);
  if (promised) row.same_text = totals.same_text;
  return row;
}

/// In the order of the questions; then "", all of them. One category says no more than all.
std::vector<std::string> categories_of(std::span<const BenchSample> samples) {
  std::map<int64_t, std::string> by_question;
  for (const BenchSample& sample : samples) by_question[sample.question] = sample.category;
  std::vector<std::string> out;
  for (const auto& [question, category] : by_question)
    if (!category.empty() && std::find(out.begin(), out.end(), category) == out.end())
      out.push_back(category);
  if (out.size() == 1) out.clear();
  out.emplace_back();
  return out;
}

/// The methods of a temperature with the run that counts: the baseline first, the others as they
/// came.
std::vector<Key> chosen_runs(std::span<const BenchSample> samples, const Groups& groups,
                             double temperature) {
  std::vector<Key> out;
  const auto rank = [&](const Key& key) { return std::pair(groups.at(key).size(), key.run); };
  for (const BenchSample& sample : samples) {
    if (sample.temperature != temperature) continue;
    const Key key{row_of(sample), sample.run};
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const Key& each) { return each.row == key.row; });
    if (known == out.end())
      out.push_back(key);
    else if (rank(key) > rank(*known))
      *known = key;
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const Key& key) { return key.row.method == kBaseline; });
  return out;
}

}  // namespace

double BenchRow::step_total_ms() const {
  return std::accumulate(step_ms.begin(), step_ms.end(), 0.0);
}

int64_t BenchRow::num_steps() const {
  return std::accumulate(emitted_per_step.begin(), emitted_per_step.end(), int64_t{0});
}

std::vector<BenchRow> summarize(std::span<const BenchSample> samples, uint64_t seed) {
  std::set<double> temperatures;
  for (const BenchSample& sample : samples) temperatures.insert(sample.temperature);
  const Groups groups = group(samples);
  std::vector<BenchRow> rows;
  for (const double temperature : temperatures)
    for (const std::string& category : categories_of(samples))
      for (const Key& key : chosen_runs(samples, groups, temperature)) {
        const auto baseline = groups.find({{temperature, kBaseline, ""}, key.run});
        if (baseline == groups.end()) continue;
        BenchRow row = make_row(key, groups.at(key), baseline->second, category, seed);
        if (row.num_questions > 0) rows.push_back(std::move(row));
      }
  return rows;
}

std::vector<BenchSample> without_replaced(std::vector<BenchSample> earlier,
                                          std::span<const BenchSample> newer) {
  std::set<RowKey> measured;
  for (const BenchSample& sample : newer) measured.insert(row_of(sample));
  std::set<std::pair<double, int64_t>> needed;  // baselines by temperature and run
  std::erase_if(earlier, [&](const BenchSample& sample) {
    if (sample.method == kBaseline) return false;
    const bool replaced = measured.contains(row_of(sample));
    if (!replaced) needed.insert({sample.temperature, sample.run});
    return replaced;
  });
  std::erase_if(earlier, [&](const BenchSample& sample) {
    return sample.method == kBaseline && measured.contains(row_of(sample)) &&
           !needed.contains({sample.temperature, sample.run});
  });
  return earlier;
}

}  // namespace medusa
