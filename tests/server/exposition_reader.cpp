#include "tests/server/exposition_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>
#include <sstream>

namespace medusa::fixtures {
namespace {

const std::string kName = "([a-zA-Z_:][a-zA-Z0-9_:]*)";

/// The labels between the braces.
std::map<std::string, std::string> read_labels(std::string text) {
  static const std::regex label(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)")re");
  std::map<std::string, std::string> out;
  for (std::smatch match; !text.empty();) {
    if (!std::regex_search(text, match, label, std::regex_constants::match_continuous)) {
      ADD_FAILURE() << "no labels: " << text;
      return out;
    }
    std::string value;
    const std::string written = match[2];
    for (size_t i = 0; i < written.size(); ++i)
      if (written[i] != '\\')
        value += written[i];
      else
        value += written[++i] == 'n' ? '\n' : written[i];
    EXPECT_TRUE(out.emplace(match[1], value).second) << "twice: " << match[1];
    text.erase(0, static_cast<size_t>(match.length()));
    if (!text.empty()) {
      EXPECT_EQ(text[0], ',');
      text.erase(0, 1);
      EXPECT_FALSE(text.empty());
    }
  }
  return out;
}

/// The name of the family that a sample belongs to.
std::string family_of(const std::string& sample, const std::map<std::string, MetricFamily>& all) {
  if (all.contains(sample)) return sample;
  for (const std::string end : {"_bucket", "_sum", "_count"}) {
    const std::string name = sample.substr(0, sample.size() - std::min(sample.size(), end.size()));
    const auto found = all.find(name);
    if (sample.ends_with(end) && found != all.end() && found->second.kind == "histogram")
      return name;
  }
  return "";
}

void check_histogram(const std::string& name, const MetricFamily& family) {
  struct Series {
    double bound = -INFINITY, below = 0, count = -1;
    bool has_sum = false;
  };
  std::map<std::map<std::string, std::string>, Series> all;
  for (const MetricSample& sample : family.samples) {
    auto labels = sample.labels;
    const bool is_bucket = sample.name == name + "_bucket";
    const std::string le = is_bucket ? labels["le"] : "";
    labels.erase("le");
    Series& series = all[labels];
    if (is_bucket) {
      const double bound = le == "+Inf" ? INFINITY : std::stod(le);
      EXPECT_GT(bound, series.bound) << name;
      EXPECT_GE(sample.value, series.below) << name;
      series.bound = bound;
      series.below = sample.value;
    } else if (sample.name == name + "_count") {
      series.count = sample.value;
    } else {
      EXPECT_EQ(sample.name, name + "_sum");
      series.has_sum = true;
    }
  }
  for (const auto& [labels, series] : all) {
    EXPECT_EQ(series.bound, INFINITY) << name;
    EXPECT_EQ(series.count, series.below) << name;
    EXPECT_TRUE(series.has_sum) << name;
  }
}

}  // namespace

std::map<std::string, MetricFamily> read_exposition(const std::string& text) {
  static const std::regex help("# HELP " + kName + " (.+)");
  static const std::regex type("# TYPE " + kName + " (counter|gauge|histogram)");
  static const std::regex sample(kName + R"((?:\{(.*)\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?))");
  EXPECT_TRUE(text.ends_with('\n'));
  std::map<std::string, MetricFamily> out;
  std::string described, current;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      described = match[1];
      EXPECT_TRUE(out.emplace(described, MetricFamily{"", match[2], {}}).second) << line;
    } else if (std::regex_match(line, match, type)) {
      current = match[1];
      EXPECT_EQ(current, described) << "HELP comes right before TYPE";
      out[current].kind = match[2];
      if (match[2] == "counter") {
        EXPECT_TRUE(current.ends_with("_total")) << line;
      }
    } else if (std::regex_match(line, match, sample)) {
      MetricSample each{match[1], read_labels(match[2]), std::stod(match[3])};
      EXPECT_EQ(family_of(each.name, out), current) << line;
      EXPECT_TRUE(seen.emplace(each.name, each.labels).second) << line;
      if (out[current].kind != "gauge") {
        EXPECT_GE(each.value, 0) << line;
      }
      out[current].samples.push_back(std::move(each));
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  for (const auto& [name, family] : out) {
    EXPECT_NE(family.kind, "") << name;
    if (family.kind == "histogram") check_histogram(name, family);
  }
  return out;
}

}  // namespace medusa::fixtures
