// Prometheus' text format (exposition format 0.0.4).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace medusa {

/// Counts of values up to some bounds.
class MetricHistogram {
 public:
  explicit MetricHistogram(std::vector<double> bounds)  // ascending
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}

  /// Adds the same value several times.
  void add(double value, int64_t times = 1);

  const std::vector<double>& bounds() const { return bounds_; }
  /// [bounds + 1] values up to each bound and above the one before; the last: all larger.
  const std::vector<int64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

/// Writes metrics one after the other.
///
/// Thread safety: none.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// @param prefix  of all names: "medusa:".
  /// @param labels  of all values; may hold any text.
  Exposition(std::string prefix, Labels labels)
      : prefix_(std::move(prefix)), labels_(std::move(labels)) {}

  /// @param name  of a counter: ends with _total.
  void counter(const std::string& name, const std::string& help, int64_t value);
  void gauge(const std::string& name, const std::string& help, double value);
  void histogram(const std::string& name, const std::string& help, const MetricHistogram& values);
  /// A counter with a label of its own.
  template <typename Key>
  void counters(const std::string& name, const std::string& help, const std::string& label,
                const std::map<Key, int64_t>& values) {
    begin(name, "counter", help);
    for (const auto& [key, value] : values) {
      if constexpr (std::is_same_v<Key, std::string>)
        line(name, {{label, key}}, static_cast<double>(value));
      else
        line(name, {{label, std::to_string(key)}}, static_cast<double>(value));
    }
  }

  const std::string& text() const { return text_; }

 private:
  void begin(const std::string& name, const char* kind, const std::string& help);
  void line(const std::string& name, const Labels& own, double value);

  std::string prefix_;
  Labels labels_;
  std::string text_;
};

}  // namespace medusa
