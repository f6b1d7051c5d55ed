// One question answered by each greedy method: which tokens came together.
#include <fmt/format.h>

#include <algorithm>

#include "tools/report/html.h"
#include "tools/report/report.h"

namespace medusa {
namespace {

constexpr int64_t kMostColors = 5;  // steps of more tokens look like these

std::string run_class(int64_t num_tokens) {
  return fmt::format("run r{}", std::clamp<int64_t>(num_tokens, 1, kMostColors));
}

std::string answer_html(const ReportedAnswer& answer) {
  int64_t num_tokens = 0;
  std::string text;
  for (const ReportedAnswer::Step& step : answer.steps) {
    num_tokens += step.num_tokens;
    text +=
        fmt::format("<span class=\"{}\" title=\"{} token{}\">{}</span>", run_class(step.num_tokens),
                    step.num_tokens, step.num_tokens == 1 ? "" : "s", escape_html(step.text));
  }
  return fmt::format(
      "<div>\n<h3>{}: {} tokens in {} steps, {:.2f} s</h3>\n<div "
      "class=\"answer\">{}</div>\n</div>\n",
      escape_html(answer.method), num_tokens, answer.steps.size(), answer.seconds, text);
}

std::string legend() {
  std::string html = "<p class=\"legend\">Tokens of one step:";
  for (int64_t n = 1; n <= kMostColors; ++n)
    html += fmt::format(" <span class=\"{}\">{}{}</span>", run_class(n), n,
                        n == kMostColors ? " or more" : "");
  return html + "</p>\n";
}

}  // namespace

std::string example_section(const ReportInputs& inputs) {
  if (!inputs.comparison.value || inputs.comparison.value->answers.empty()) return {};
  const ReportedComparison& comparison = *inputs.comparison.value;
  std::string body = paragraph(comparison.question) + legend() + "<div class=\"pair\">\n";
  for (const ReportedAnswer& each : comparison.answers) body += answer_html(each);
  return section("example", "One question, answered by each", body + "</div>\n");
}

}  // namespace medusa
