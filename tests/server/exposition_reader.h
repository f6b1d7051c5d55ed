// Reads Prometheus' text format as strictly as it is described, apart from the code that writes it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace medusa::fixtures {

struct MetricSample {
  std::string name;  // with _bucket, _sum or _count
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct MetricFamily {
  std::string kind, help;  // "counter", "gauge" or "histogram"
  std::vector<MetricSample> samples;
};

/// By name. What breaks the format fails the test: a line of another form, a sample without its
/// type, lines of a metric apart from each other, a value twice, a counter below 0 or without
/// _total, a histogram whose buckets do not grow or do not end with its count.
std::map<std::string, MetricFamily> read_exposition(const std::string& text);

}  // namespace medusa::fixtures
