#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/bench/result.h"

namespace medusa {
namespace {

std::string speedup_cell(const BenchRow& row) {
  if (row.baseline()) return "1";
  if (!row.speedup_95) return fmt::format("{:.2f}, no interval", row.speedup);
  return fmt::format("{:.2f} ({:.2f}–{:.2f})", row.speedup, row.speedup_95->low,
                     row.speedup_95->high);
}

std::string same_cell(const BenchRow& row) {
  return row.same_text ? fmt::format("{} / {}", *row.same_text, row.num_questions) : "–";
}

/// A vertical bar would end the cell.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string conditions_table(const BenchResult& result, const MeasuredBy& by) {
  std::string text = "| condition | value |\n|---|---|\n";
  const auto row = [&text](const std::string& name, const std::string& value) {
    text += fmt::format("| {} | {} |\n", cell(name), cell(value));
  };
  row("date", by.date);
  row("program", by.version);
  for (const auto& [name, value] : result.conditions) row(name, value);
  row("repeats", repeats_text(result));
  return text;
}

std::string methods_table(const std::vector<const BenchRow*>& rows) {
  std::string text =
      "| method | tokens/s | tokens/step | step overhead | speed-up (95 %) | same text | prefill, "
      "ms "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const BenchRow* row : rows)
    text += fmt::format("| `{}` | {:.1f} | {:.2f} | {:.2f} | {} | {} | {:.0f} |\n", row_name(*row),
                        row->tokens_per_s, row->tokens_per_step, row->step_overhead,
                        speedup_cell(*row), same_cell(*row), row->prefill_ms);
  return text;
}

std::string categories_table(const std::vector<const BenchRow*>& rows) {
  std::string text = "| category | method | tokens/s | speed-up (95 %) |\n|---|---|---|---|\n";
  for (const BenchRow* row : rows)
    text += fmt::format("| {} | `{}` | {:.1f} | {} |\n", cell(row->category), row_name(*row),
                        row->tokens_per_s, speedup_cell(*row));
  return text;
}

}  // namespace

std::string bench_markdown(const BenchResult& result, const MeasuredBy& by) {
  std::string text = fmt::format("# {}\n\n{}\n```\n{}\n```\n", result.machine,
                                 conditions_table(result, by), by.command);
  std::vector<double> temperatures;
  for (const BenchRow& row : result.rows)
    if (temperatures.empty() || temperatures.back() != row.temperature)
      temperatures.push_back(row.temperature);
  for (const double temperature : temperatures) {
    std::vector<const BenchRow*> overall, categories;
    for (const BenchRow& row : result.rows)
      if (row.temperature == temperature && row.category.empty())
        overall.push_back(&row);
      else if (row.temperature == temperature && !row.baseline())
        categories.push_back(&row);
    if (overall.empty()) continue;
    text += fmt::format("\nTemperature {}, {} questions:\n\n{}", temperature,
                        overall.front()->num_questions, methods_table(overall));
    if (!categories.empty()) text += "\n" + categories_table(categories);
  }
  for (const FailedMethod& each : result.failed)
    text += fmt::format("\n`{}` at temperature {} did not run: {}\n", each.method, each.temperature,
                        each.reason);
  if (!result.complete) text += "\nInterrupted: only the rounds so far.\n";
  return text;
}

}  // namespace medusa
