#include "server/metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>

namespace medusa {
namespace {

/// A label's value between its quotes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c == '\n')
      out += "\\n";
    else if (c == '"' || c == '\\')
      out += {'\\', c};
    else
      out += c;
  return out;
}

}  // namespace

void MetricHistogram::add(double value, int64_t times) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<size_t>(at)] += times;
  sum_ += value * static_cast<double>(times);
}

void Exposition::begin(const std::string& name, const char* kind, const std::string& help) {
  text_ += fmt::format("# HELP {0}{1} {3}\n# TYPE {0}{1} {2}\n", prefix_, name, kind, help);
}

void Exposition::line(const std::string& name, const Labels& own, double value) {
  std::string labels;
  for (const auto* list : {&std::as_const(labels_), &own})
    for (const auto& [label, text] : *list)
      labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", label, escaped(text));
  text_ += labels.empty() ? fmt::format("{}{} {}\n", prefix_, name, value)
                          : fmt::format("{}{}{{{}}} {}\n", prefix_, name, labels, value);
}

void Exposition::counter(const std::string& name, const std::string& help, int64_t value) {
  begin(name, "counter", help);
  line(name, {}, static_cast<double>(value));
}

void Exposition::gauge(const std::string& name, const std::string& help, double value) {
  begin(name, "gauge", help);
  line(name, {}, value);
}

void Exposition::histogram(const std::string& name, const std::string& help,
                           const MetricHistogram& values) {
  begin(name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i < values.counts().size(); ++i) {
    below += values.counts()[i];
    const bool is_last = i == values.bounds().size();
    line(name + "_bucket", {{"le", is_last ? "+Inf" : fmt::format("{}", values.bounds()[i])}},
         static_cast<double>(below));
  }
  line(name + "_sum", {}, values.sum());
  line(name + "_count", {}, static_cast<double>(below));
}

}  // namespace medusa
