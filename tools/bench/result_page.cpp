#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/bench/result.h"
#include "tools/report/bar_chart.h"
#include "tools/report/html.h"
#include "tools/report/interval_chart.h"
#include "tools/report/section_parts.h"

namespace medusa {
namespace {

using Rows = std::vector<const BenchRow*>;

std::string with_interval(const BenchRow& row) {
  if (!row.speedup_95) return times(row.speedup);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", row.speedup, row.speedup_95->low,
                     row.speedup_95->high);
}

std::optional<std::pair<double, double>> pair_of(const std::optional<Interval>& interval) {
  if (!interval) return std::nullopt;
  return std::pair(interval->low, interval->high);
}

/// The rows of a temperature that are, or are not, over all questions.
Rows select(const BenchResult& result, double temperature, bool overall) {
  Rows out;
  for (const BenchRow& row : result.rows)
    if (row.temperature == temperature && row.category.empty() == overall) out.push_back(&row);
  return out;
}

std::vector<Tile> headline(const BenchResult& result) {
  const BenchRow* best = nullptr;
  const BenchRow* plain = nullptr;
  for (const BenchRow& row : result.rows) {
    if (!row.category.empty()) continue;
    if (row.baseline()) {
      if (plain == nullptr) plain = &row;
    } else if (best == nullptr || row.speedup > best->speedup) {
      best = &row;
    }
  }
  if (best == nullptr || plain == nullptr) return {};
  std::vector<Tile> tiles{
      {fmt::format("{:.2f}", best->speedup), "×", fmt::format("the fastest: {}", row_name(*best)),
       best->speedup_95
           ? fmt::format("95 %: {:.2f} to {:.2f}, temperature {}", best->speedup_95->low,
                         best->speedup_95->high, best->temperature)
           : fmt::format("temperature {}", best->temperature)},
      {fmt::format("{:.1f}", best->tokens_per_s), "tokens/s", "with " + row_name(*best),
       fmt::format("none, temperature {}: {:.1f} tokens/s", plain->temperature,
                   plain->tokens_per_s)},
      {fmt::format("{:.2f}", best->tokens_per_step), "tokens/step",
       "emitted by each pass of the model",
       fmt::format("step overhead {:.2f}", best->step_overhead)}};
  if (best->same_text)
    tiles.push_back({fmt::format("{} / {}", *best->same_text, best->num_questions), "questions",
                     "same text as plain decoding", "token for token"});
  return tiles;
}

std::string overall_table(const Rows& rows) {
  HtmlTable out;
  out.header = {"",          "tokens/s",   "tokens/step", "step overhead", "speed-up (95 %)",
                "same text", "prefill ms", "peak MB"};
  for (const BenchRow* row : rows)
    out.rows.push_back(
        {row_name(*row), fmt::format("{:.1f}", row->tokens_per_s),
         fmt::format("{:.2f}", row->tokens_per_step), times(row->step_overhead),
         with_interval(*row),
         row->same_text ? fmt::format("{} / {}", *row->same_text, row->num_questions) : "–",
         fmt::format("{:.0f}", row->prefill_ms),
         row->peak_bytes == 0 ? "–"
                              : fmt::format("{:.0f}", static_cast<double>(row->peak_bytes) / 1e6)});
  return "<div class=\"wide full\">\n" + table(out) + "</div>\n<div class=\"narrow\">\n" +
         table(transposed(out)) + "</div>\n";
}

std::string speedup_figure(const Rows& rows) {
  IntervalChart chart{.description = "Speed-up over plain decoding of every method",
                      .x_label = "speed-up over none (×)",
                      .rows = {}};
  int color = 0;
  for (const BenchRow* row : rows)
    if (!row->baseline())
      chart.rows.push_back(
          {row_name(*row), {{row_name(*row), color++, row->speedup, pair_of(row->speedup_95)}}});
  return figure("Speed-up", draw_interval_chart(chart, kWidePicture),
                draw_interval_chart(chart, kNarrowPicture),
                "Dot: all questions together. Line: 95 % interval, how the figure would change "
                "with other questions of the same kind.");
}

std::string lengths_figure(const Rows& rows) {
  Histogram histogram{.description = "How many tokens a step emitted, as a share of all steps",
                      .x_label = "tokens emitted by a step",
                      .y_label = "share of steps (%)",
                      .categories = {},
                      .series = {}};
  std::vector<std::pair<std::string, int>> legend;
  size_t longest = 0;
  for (const BenchRow* row : rows) {
    if (row->baseline() || row->num_steps() == 0) continue;
    Histogram::Series series{row_name(*row), static_cast<int>(histogram.series.size()), {}};
    for (size_t n = 1; n < row->emitted_per_step.size(); ++n) {
      const int64_t count = row->emitted_per_step[n];
      series.shares.push_back(static_cast<double>(count) / static_cast<double>(row->num_steps()));
      if (count > 0) longest = std::max(longest, n);
    }
    legend.emplace_back(series.name, series.color);
    histogram.series.push_back(std::move(series));
  }
  for (size_t n = 1; n <= longest; ++n) histogram.categories.push_back(std::to_string(n));
  return figure("Tokens emitted by a step", draw_histogram(histogram, kWidePicture, 300),
                draw_histogram(histogram, kNarrowPicture, 260),
                "A step always emits one token; the others are drafts that stood.",
                color_legend(legend));
}

std::string parts_figure(const Rows& rows) {
  StackedBars chart{.description = "Where the time of a step goes", .unit = "ms", .bars = {}};
  for (const BenchRow* row : rows) {
    StackedBars::Bar bar{row_name(*row), {}};
    for (const size_t part : {1, 0, 2, 3})  // the longest first
      bar.parts.push_back(
          {kStepParts[part], static_cast<int>(bar.parts.size()), row->step_ms[part]});
    chart.bars.push_back(std::move(bar));
  }
  return figure("Where a step's time goes", draw_stacked_bars(chart, kWidePicture),
                draw_stacked_bars(chart, kNarrowPicture),
                "Mean of all steps, in ms. Verify: the backbone's pass; propose: the drafter; "
                "accept: the rule; commit: the cache and the drafter's memory.");
}

std::string parts_table(const Rows& rows) {
  HtmlTable out;
  out.header = {"", "step (ms)"};
  for (const char* part : kStepParts) out.header.emplace_back(part);
  for (const BenchRow* row : rows) {
    std::vector<std::string> cells{row_name(*row), fmt::format("{:.3f}", row->step_total_ms())};
    for (const double ms : row->step_ms) cells.push_back(percent(ms / row->step_total_ms()));
    out.rows.push_back(std::move(cells));
  }
  return "<div>\n<h3>Shares of the step</h3>\n" + table(out) + "</div>\n";
}

/// Categories down, methods across. Empty if there is one category only.
std::string category_part(const Rows& rows) {
  if (rows.empty()) return {};
  std::vector<std::string> categories, methods;
  const auto place = [](std::vector<std::string>& names, const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    const auto at = static_cast<size_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return at;
  };
  for (const BenchRow* row : rows) {
    place(categories, row->category);
    if (!row->baseline()) place(methods, row_name(*row));
  }
  if (methods.empty()) return {};
  HtmlTable cells;
  cells.header = {"", "questions"};
  cells.header.insert(cells.header.end(), methods.begin(), methods.end());
  IntervalChart chart{.description = "Speed-up over plain decoding by category",
                      .x_label = "speed-up over none (×)",
                      .rows = {}};
  for (const std::string& category : categories) {
    chart.rows.push_back({category, {}});
    cells.rows.emplace_back(methods.size() + 2, "–");
    cells.rows.back()[0] = category;
  }
  for (const BenchRow* row : rows) {
    const size_t line = place(categories, row->category);
    cells.rows[line][1] = std::to_string(row->num_questions);
    if (row->baseline()) continue;
    const size_t column = place(methods, row_name(*row));
    cells.rows[line][column + 2] = with_interval(*row);
    chart.rows[line].marks.push_back(
        {row_name(*row), static_cast<int>(column), row->speedup, pair_of(row->speedup_95)});
  }
  std::erase_if(chart.rows, [](const auto& row) { return row.marks.empty(); });
  std::vector<std::pair<std::string, int>> legend;
  for (size_t i = 0; i < methods.size(); ++i) legend.emplace_back(methods[i], static_cast<int>(i));
  return figure("Speed-up by category", draw_interval_chart(chart, 2 * kWidePicture),
                draw_interval_chart(chart, kNarrowPicture), "Lines: 95 % intervals.",
                color_legend(legend)) +
         details_block("Speed-up by category in numbers (95 % interval)", table(cells));
}

std::string temperature_section(const BenchResult& result, double temperature) {
  const Rows overall = select(result, temperature, true);
  const bool several = overall.size() > 1;
  const std::string pictures = several ? "<div class=\"pair\">\n" + speedup_figure(overall) +
                                             lengths_figure(overall) + "</div>\n"
                                       : "";
  const std::string id = fmt::format("temperature-{}", temperature);
  return section(id, fmt::format("Temperature {}", temperature),
                 overall_table(overall) +
                     paragraph("Tokens/s counts decoding only, not the reading of the prompt. "
                               "Step overhead is the time of a step ÷ that of a plain step; "
                               "tokens/step ÷ step overhead gives the speed-up. Same text: "
                               "questions answered token for token as by plain decoding. Peak: "
                               "main memory, all methods loaded.",
                               "note") +
                     pictures + "<div class=\"pair\">\n" + parts_figure(overall) +
                     parts_table(overall) + "</div>\n" +
                     category_part(select(result, temperature, false)));
}

std::string conditions_section(const BenchResult& result) {
  HtmlTable out;
  out.header = {"condition", "value"};
  for (const auto& [name, value] : result.conditions) out.rows.push_back({name, value});
  std::string body = table(out);
  if (!result.settings.empty())
    body += details_block("All settings of the run", preformatted(result.settings));
  return section("conditions", "Conditions", body);
}

std::string failures_section(const BenchResult& result) {
  if (result.failed.empty()) return {};
  std::string body;
  for (const FailedMethod& each : result.failed)
    body += paragraph(
        fmt::format("{}, temperature {}: {}", each.method, each.temperature, each.reason));
  return section("failed", "Methods that did not run", body);
}

std::string measured_text(const BenchResult& result) {
  const std::string repeats = repeats_text(result);
  std::string text =
      fmt::format("{} questions, {} {}; every method answered each in turn. {}",
                  result.num_questions, repeats, repeats == "1" ? "time" : "times", result.machine);
  if (!result.complete) text += ". Interrupted: only the rounds so far.";
  return text;
}

}  // namespace

std::string bench_page(const BenchResult& result, const PageFrame& frame) {
  std::set<double> temperatures;
  for (const BenchRow& row : result.rows) temperatures.insert(row.temperature);
  std::string body = tiles_html(headline(result));
  for (const double temperature : temperatures) body += temperature_section(result, temperature);
  std::string note = measured_text(result);
  if (!frame.measured.empty()) note += "; " + frame.measured;
  return html_page("Decoding methods compared", note,
                   body + failures_section(result) + conditions_section(result), 0, frame.links);
}

}  // namespace medusa
