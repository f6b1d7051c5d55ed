#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/bench/result.h"

namespace medusa {
namespace {

constexpr double kMegabyte = 1e6;

using Rows = std::vector<const BenchRow*>;

std::string same_text(const BenchRow& row) {
  return row.same_text ? fmt::format("{} / {}", *row.same_text, row.num_questions) : "–";
}

std::string interval(const BenchRow& row) {
  if (!row.speedup_95) return "–";
  return fmt::format("{:.2f} to {:.2f}", row.speedup_95->low, row.speedup_95->high);
}

std::string peak(const BenchRow& row) {
  if (row.peak_bytes == 0) return "–";
  return fmt::format("{:.0f}", static_cast<double>(row.peak_bytes) / kMegabyte);
}

std::string speed_table(const Rows& rows, int64_t num_questions) {
  std::string text;
  std::string category = "\n";  // no category has this name
  for (const BenchRow* row : rows) {
    if (row->category != category) {
      category = row->category;
      text += fmt::format("{}\n", category.empty() ? "all questions" : category);
    }
    text += fmt::format("  {:<22}{:>9.1f}{:>13.2f}{:>10.2f}{:>10.2f}  {:>14}{:>12}{:>9.0f}{:>9}",
                        row_name(*row), row->tokens_per_s, row->tokens_per_step, row->step_overhead,
                        row->speedup, interval(*row), same_text(*row), row->prefill_ms, peak(*row));
    if (category.empty() && row->num_questions < num_questions)
      text += fmt::format("  partial: {} of {} questions", row->num_questions, num_questions);
    text += "\n";
  }
  return fmt::format("  {:<22}{:>9}{:>13}{:>10}{:>10}  {:>14}{:>12}{:>9}{:>9}\n", "", "tokens/s",
                     "tokens/step", "overhead", "speed-up", "95 %", "same text", "prefill",
                     "peak") +
         text;
}

/// Shares of the steps that emitted 1, 2, 3, … tokens.
std::string lengths_table(const Rows& rows) {
  size_t longest = 1;
  for (const BenchRow* row : rows)
    for (size_t n = 0; n < row->emitted_per_step.size(); ++n)
      if (row->emitted_per_step[n] > 0) longest = std::max(longest, n);
  std::string text = fmt::format("{:<24}", "tokens of a step (%)");
  for (size_t n = 1; n <= longest; ++n) text += fmt::format("{:>7}", n);
  text += "\n";
  for (const BenchRow* row : rows) {
    if (row->baseline()) continue;
    text += fmt::format("  {:<22}", row_name(*row));
    for (size_t n = 1; n <= longest; ++n) {
      const int64_t count = n < row->emitted_per_step.size() ? row->emitted_per_step[n] : 0;
      text += fmt::format("{:>7.1f}",
                          100 * static_cast<double>(count) / static_cast<double>(row->num_steps()));
    }
    text += "\n";
  }
  return text;
}

std::string parts_text(const Rows& rows) {
  std::string text = fmt::format("{:<24}{:>9}", "time of a step (ms)", "step");
  for (const char* part : kStepParts) text += fmt::format("{:>18}", part);
  text += "\n";
  for (const BenchRow* row : rows) {
    text += fmt::format("  {:<22}{:>9.3f}", row_name(*row), row->step_total_ms());
    for (const double ms : row->step_ms)
      text += fmt::format("{:>9.3f} ({:>4.1f} %)", ms, 100 * ms / row->step_total_ms());
    text += "\n";
  }
  return text;
}

}  // namespace

std::string repeats_text(const BenchResult& result) {
  int64_t least = 0, most = 0;
  for (const BenchRow& row : result.rows) {
    if (!row.category.empty()) continue;
    const int64_t repeats = (row.num_samples + row.num_questions - 1) / row.num_questions;
    least = least == 0 ? repeats : std::min(least, repeats);
    most = std::max(most, repeats);
  }
  if (most == 0) return std::to_string(result.repeats);  // nothing was measured
  return least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
}

std::string row_name(const BenchRow& row) {
  const bool usual = row.baseline() || row.rule == (row.temperature > 0 ? "match" : "greedy");
  return usual ? row.method : row.method + ", " + row.rule;
}

std::string bench_table(const BenchResult& result) {
  std::set<double> temperatures;
  for (const BenchRow& row : result.rows) temperatures.insert(row.temperature);
  std::string text;
  for (const double temperature : temperatures) {
    Rows rows, overall;
    for (const BenchRow& row : result.rows)
      if (row.temperature == temperature) {
        rows.push_back(&row);
        if (row.category.empty()) overall.push_back(&row);
      }
    text +=
        fmt::format("temperature {}\n{}\n", temperature, speed_table(rows, result.num_questions));
    if (overall.size() > 1) text += lengths_table(overall) + "\n";
    text += parts_text(overall) + "\n";
  }
  text +=
      "prefill: ms per prompt; peak: MB of main memory, or of the GPU that decodes, all methods "
      "loaded\n";
  for (const FailedMethod& each : result.failed)
    text += fmt::format("{} at temperature {} did not run: {}\n", each.method, each.temperature,
                        each.reason);
  if (!result.complete) text += "interrupted: only the rounds so far (partial)\n";
  return text;
}

}  // namespace medusa
