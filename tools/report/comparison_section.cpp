// Plain and speculative decoding side by side: the table, the accepted lengths, the step's time.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/report/bar_chart.h"
#include "tools/report/html.h"
#include "tools/report/report.h"
#include "tools/report/section_parts.h"

namespace medusa {
namespace {

std::string method_table(const ReportedComparison& comparison) {
  HtmlTable out;
  out.header = {"",         "tokens/s", "tokens/step",       "step overhead",
                "speed-up", "95 %",     "same text as plain"};
  for (const ReportedMethod& method : comparison.methods)
    out.rows.push_back(
        {method.name(), fmt::format("{:.1f}", method.tokens_per_s),
         fmt::format("{:.2f}", method.tokens_per_step), times(method.step_overhead),
         times(method.speedup),
         method.speedup_95
             ? fmt::format("{:.2f} to {:.2f}", method.speedup_95->first, method.speedup_95->second)
             : "–",
         method.same_text ? fmt::format("{} / {}", *method.same_text, method.num_prompts) : "–"});
  return "<div class=\"wide\">\n" + table(out) + "</div>\n<div class=\"narrow\">\n" +
         table(transposed(out)) + "</div>\n";
}

std::string table_notes(const ReportedComparison& comparison) {
  const int64_t prompts = comparison.methods.empty() ? 0 : comparison.methods[0].num_prompts;
  std::string text = fmt::format(
      "{} prompts{}; every method answered each of them in turn. Tokens/s counts decoding only, "
      "not the reading of the prompt. Step overhead is the time of a step ÷ that of a plain step. "
      "Sampled methods are compared with plain sampling at the same temperature; 95 % is a paired "
      "bootstrap over the prompts.",
      grouped(prompts), comparison.dtype.empty() ? "" : ", " + comparison.dtype);
  if (!comparison.complete) text += " The comparison was interrupted: only the prompts so far.";
  return paragraph(text, "note");
}

std::string accepted_lengths(const ReportedComparison& comparison) {
  Histogram histogram;
  histogram.description = "How many tokens a step emitted, as a share of all steps";
  histogram.x_label = "tokens emitted by a step";
  histogram.y_label = "share of steps (%)";
  std::vector<std::pair<std::string, int>> legend;
  size_t longest = 0;
  for (const ReportedMethod& method : comparison.methods) {
    if (method.plain() || method.num_steps() == 0) continue;
    const auto& counts = method.emitted_per_step;
    Histogram::Series series{method.name(), static_cast<int>(histogram.series.size()), {}};
    for (size_t n = 1; n < counts.size(); ++n) {
      series.shares.push_back(static_cast<double>(counts[n]) /
                              static_cast<double>(method.num_steps()));
      if (counts[n] > 0) longest = std::max(longest, n);
    }
    legend.emplace_back(series.name, series.color);
    histogram.series.push_back(std::move(series));
  }
  for (size_t n = 1; n <= longest; ++n) histogram.categories.push_back(std::to_string(n));
  return figure("Tokens emitted by a step", draw_histogram(histogram, 490, 300),
                draw_histogram(histogram, 330, 260),
                "A step always emits one token; the others are drafts that stood.",
                color_legend(legend));
}

std::string step_times(const ReportedComparison& comparison) {
  constexpr std::array kPhases = {"verify", "propose", "accept", "commit"};  // longest first
  StackedBars chart{.description = "Where the time of a step goes", .unit = "ms", .bars = {}};
  for (const ReportedMethod& method : comparison.methods) {
    if (method.phase_ms.empty()) continue;
    StackedBars::Bar bar{method.name(), {}};
    for (size_t i = 0; i < kPhases.size(); ++i)
      for (const auto& [phase, ms] : method.phase_ms)
        if (phase == kPhases[i]) bar.parts.push_back({phase, static_cast<int>(i), ms});
    chart.bars.push_back(std::move(bar));
  }
  return figure("Where a step's time goes", draw_stacked_bars(chart, 490),
                draw_stacked_bars(chart, 330),
                "Mean of all steps, in ms. Verify: the backbone's pass; propose: the heads; "
                "accept: the rule; "
                "commit: the cache.");
}

}  // namespace

std::string comparison_section(const ReportInputs& inputs) {
  if (!inputs.comparison.value)
    return section("comparison", "Plain and speculative decoding",
                   paragraph(inputs.comparison.absence, "absent"));
  const ReportedComparison& comparison = *inputs.comparison.value;
  const std::string remark =
      compares_other_heads(inputs)
          ? paragraph(
                "These are of other heads than the run's. medusa generate --compare measures "
                "those.",
                "absent")
          : "";
  return section("comparison", "Plain and speculative decoding",
                 remark + method_table(comparison) + table_notes(comparison) +
                     "<div class=\"pair\">\n" + accepted_lengths(comparison) +
                     step_times(comparison) + "</div>\n");
}

}  // namespace medusa
