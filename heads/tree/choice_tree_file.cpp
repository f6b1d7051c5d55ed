// Tree files: reading, writing and importing the lists of other projects.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_text.h"
#include "base/yaml_fields.h"
#include "heads/tree/choice_tree.h"

namespace medusa {
namespace {

constexpr const char* kTreeFormat = "medusa-choice-tree";
constexpr int64_t kTreeVersion = 1;
constexpr double kLeastTemperature = 0.01;  // fitted ones are far above; exp(x / T) is not 0 yet
constexpr int64_t kMostRank = std::numeric_limits<int32_t>::max() - 1;  // top_k is one more

/// The calibration section as the file has it: lists side by side.
struct CalibrationFields {
  TreeCalibration calibration;
  std::vector<RankPath> paths;
  std::vector<int64_t> counts;
  std::vector<int32_t> num_nodes;
  std::vector<double> tokens_per_step, step_ms;
  std::vector<std::string> drafters;
  std::vector<double> speedups;
  std::vector<std::vector<double>> speedup_intervals;

  template <typename Fields>
  void fields(Fields& f) {
    f("machine", calibration.machine, "what the steps were timed on");
    f("context", calibration.context, "committed tokens while steps were timed");
    f("num_positions", calibration.num_positions, "validation positions behind the counts");
    f("num_answers", calibration.num_answers, "answers the positions come from");
    f("head_accuracy", calibration.head_accuracy, "by head, then by rank");
    f("num_nodes", num_nodes, "tree sizes looked at");
    f("tokens_per_step", tokens_per_step, "expected with the best tree of each size");
    f("step_ms", step_ms, "measured with each size");
    f("rows_ms", calibration.rows_ms, "steps of 1, 2, … rows without drafting", greater_than(0.0));
    f("drafting_ms", calibration.drafting_ms, "drafting of trees of 1, 2, … nodes", at_least(0.0));
    f("drafters", drafters, "those that decoded with the tree, by turns");
    f("speedups", speedups, "of each over plain decoding", greater_than(0.0));
    f("speedups_95", speedup_intervals, "their 95 % intervals");
    f("paths", paths, "paths considered, most probable first");
    f("counts", counts, "positions at which each of them was right");
  }
  void validate() const {
    if (counts.size() != paths.size() || tokens_per_step.size() != num_nodes.size() ||
        step_ms.size() != num_nodes.size())
      throw UserError(
          "calibration: lists that belong together have different lengths, expected one count per "
          "path and one tokens_per_step and step_ms per num_nodes; calibrate again");
    const auto is_pair = [](const std::vector<double>& interval) { return interval.size() == 2; };
    if (speedups.size() != drafters.size() || speedup_intervals.size() != drafters.size() ||
        !std::all_of(speedup_intervals.begin(), speedup_intervals.end(), is_pair))
      throw UserError(
          "calibration: drafters, speedups and speedups_95 do not belong together, expected one "
          "speed-up and one [low, high] per drafter; calibrate again");
  }

  std::optional<TreeCalibration> value() const {
    if (calibration.num_positions == 0 && num_nodes.empty()) return std::nullopt;
    TreeCalibration result = calibration;
    for (size_t i = 0; i < paths.size(); ++i) result.path_counts.push_back({paths[i], counts[i]});
    for (size_t i = 0; i < num_nodes.size(); ++i)
      result.sizes.push_back({num_nodes[i], tokens_per_step[i], step_ms[i]});
    for (size_t i = 0; i < drafters.size(); ++i)
      result.drafters.push_back(
          {drafters[i], {speedups[i], speedup_intervals[i][0], speedup_intervals[i][1]}});
    return result;
  }
};

/// The sweep over thresholds as the file has it: lists side by side.
struct TypicalFields {
  double temperature = 0;
  int64_t chosen = 0;
  std::vector<double> plain_surprisal, epsilon, delta, kl, agreement;
  std::vector<std::vector<double>> speedup, surprisal;

  template <typename Fields>
  void fields(Fields& f) {
    f("temperature", temperature, "of both methods", at_least(0.0));
    f("chosen", chosen, "index of the point that decodes where no thresholds are named",
      at_least<int64_t>(0));
    f("plain_surprisal", plain_surprisal,
      "nats per token of plain sampling, and its 95 % interval");
    f("epsilon", epsilon, "of each point", between(0.0, 1.0));
    f("delta", delta, "of each point", between(0.0, 1.0));
    f("speedup", speedup, "over plain sampling, with 95 % intervals");
    f("surprisal", surprisal, "nats per token, with 95 % intervals");
    f("kl", kl, "nats per token from the model, given the drafts", at_least(0.0));
    f("agreement", agreement, "share of tokens that plain sampling would have drawn",
      between(0.0, 1.0));
  }
  void validate() const {
    const size_t size = epsilon.size();
    const auto is_estimate = [](const std::vector<double>& each) { return each.size() == 3; };
    if (size > 0 && (delta.size() != size || kl.size() != size || agreement.size() != size ||
                     speedup.size() != size || surprisal.size() != size ||
                     static_cast<size_t>(chosen) >= size || !is_estimate(plain_surprisal) ||
                     !std::all_of(speedup.begin(), speedup.end(), is_estimate) ||
                     !std::all_of(surprisal.begin(), surprisal.end(), is_estimate)))
      throw UserError(
          "typical: lists that belong together have different lengths, expected one entry for each "
          "epsilon and [value, low, high] for each estimate; run medusa calibrate --typical again");
  }

  std::optional<TypicalSweep> value() const {
    if (epsilon.empty()) return std::nullopt;
    const auto estimate = [](const std::vector<double>& each) {
      return Estimate{each[0], each[1], each[2]};
    };
    TypicalSweep out{temperature, estimate(plain_surprisal), {}, static_cast<size_t>(chosen)};
    for (size_t i = 0; i < epsilon.size(); ++i)
      out.points.push_back({epsilon[i], delta[i], estimate(speedup[i]), estimate(surprisal[i]),
                            kl[i], agreement[i]});
    return out;
  }
};

struct TreeFields {
  std::string format;
  int64_t version = 0;
  std::string source, heads, drafter;
  int32_t top_k = 0;
  std::optional<double> expected_tokens_per_step;
  std::vector<double> interval;
  std::vector<double> temperatures;
  std::vector<RankPath> nodes;
  CalibrationFields calibration;
  TypicalFields typical;

  template <typename Fields>
  void fields(Fields& f) {
    f("format", format, "");
    f("version", version, "");
    f("source", source, "project or paper of an imported tree");
    f("heads", heads, "fingerprint of the heads the ranks were measured on");
    f("drafter", drafter, "the fastest one where the tree was calibrated");
    f("top_k", top_k, "drafts kept per head", at_least(1));
    f("expected_tokens_per_step", expected_tokens_per_step, "on the validation positions");
    f("expected_tokens_per_step_95", interval, "its 95 % interval");
    f("temperatures", temperatures, "of each head's drafts, for dynamic trees");
    f("nodes", nodes, "paths of draft ranks");
    f.section("calibration", calibration, "what the tree was chosen from");
    f.section("typical", typical, "what typical acceptance gave and cost");
  }
};

TreeFields read_fields(const YamlFile& yaml, const std::filesystem::path& file) {
  const YAML::Node& root = yaml.root();
  const YAML::Node format = root.IsMap() ? root["format"] : YAML::Node();
  if (!format || !format.IsScalar() || format.Scalar() != kTreeFormat)
    throw UserError(fmt::format(
        "{}:1: this is not a choice tree, expected 'format: {}'; pass a tree that 'medusa "
        "calibrate' wrote or one of configs/trees",
        file.string(), kTreeFormat));
  TreeFields fields;
  FieldReader reader(yaml, root, "");
  fields.fields(reader);
  reader.reject_unknown();
  if (fields.version != kTreeVersion)
    throw UserError(fmt::format("{}: version {} of the format, expected {}; calibrate again",
                                yaml.place("version", root["version"] ? root["version"] : root),
                                fields.version, kTreeVersion));
  if (fields.top_k == 0)
    throw UserError(
        fmt::format("{}: 'top_k' is missing, expected the number of drafts kept per head; add it",
                    file.string()));
  if (!fields.interval.empty() && fields.interval.size() != 2)
    throw UserError(fmt::format(
        "{}: 'expected_tokens_per_step_95' has {} numbers, expected [low, high]; mend it",
        yaml.place("expected_tokens_per_step_95", root["expected_tokens_per_step_95"]),
        fields.interval.size()));
  for (const double temperature : fields.temperatures)
    if (temperature < kLeastTemperature)
      throw UserError(
          fmt::format("{}: a temperature is {}, expected numbers from {} on; calibrate again or "
                      "remove the line",
                      yaml.place("temperatures", root["temperatures"]), number_text(temperature),
                      number_text(kLeastTemperature)));
  return fields;
}

std::string numbers_text(const std::vector<double>& values, int digits) {
  std::string text;
  for (const double value : values)
    text += fmt::format("{}{:.{}f}", text.empty() ? "" : ", ", value, digits);
  return "[" + text + "]";
}

/// One list entry a line.
template <typename Entries, typename Text>
std::string list_text(const Entries& entries, const char* indent, Text text) {
  if (entries.empty()) return " []\n";
  std::string lines = "\n";
  for (const auto& entry : entries) lines += fmt::format("{}- {}\n", indent, text(entry));
  return lines;
}

std::string drafters_text(const std::vector<DrafterSpeed>& drafters) {
  if (drafters.empty()) return "";
  std::string names, speedups, intervals;
  for (const DrafterSpeed& each : drafters) {
    const char* comma = names.empty() ? "" : ", ";
    names += comma + each.drafter;
    speedups += fmt::format("{}{:.4f}", comma, each.speedup.value);
    intervals += fmt::format("{}[{:.4f}, {:.4f}]", comma, each.speedup.low, each.speedup.high);
  }
  return fmt::format("  drafters: [{}]\n  speedups: [{}]\n  speedups_95: [{}]\n", names, speedups,
                     intervals);
}

std::string calibration_text(const TreeCalibration& calibration) {
  std::vector<int32_t> num_nodes;
  std::vector<double> tokens_per_step, step_ms;
  for (const TreeSizePoint& point : calibration.sizes) {
    num_nodes.push_back(point.num_nodes);
    tokens_per_step.push_back(point.tokens_per_step);
    step_ms.push_back(point.step_ms);
  }
  std::vector<int64_t> counts;
  for (const PathCount& each : calibration.path_counts) counts.push_back(each.count);
  YAML::Emitter machine;
  machine << YAML::DoubleQuoted << calibration.machine;
  return fmt::format(
      "calibration:\n  machine: {}\n  context: {}\n  num_positions: {}\n  num_answers: {}\n"
      "  head_accuracy:{}  num_nodes: [{}]\n  tokens_per_step: {}\n  step_ms: {}\n{}{}{}"
      "  paths:{}  counts: [{}]\n",
      machine.c_str(), calibration.context, calibration.num_positions, calibration.num_answers,
      list_text(calibration.head_accuracy, "    ",
                [](const std::vector<double>& row) { return numbers_text(row, 6); }),
      fmt::join(num_nodes, ", "), numbers_text(tokens_per_step, 6), numbers_text(step_ms, 4),
      calibration.rows_ms.empty()
          ? ""
          : fmt::format("  rows_ms: {}\n", numbers_text(calibration.rows_ms, 4)),
      calibration.drafting_ms.empty()
          ? ""
          : fmt::format("  drafting_ms: {}\n", numbers_text(calibration.drafting_ms, 4)),
      drafters_text(calibration.drafters),
      list_text(calibration.path_counts, "    ",
                [](const PathCount& each) { return path_text(each.path); }),
      fmt::join(counts, ", "));
}

std::string typical_text(const TypicalSweep& sweep) {
  const auto estimate = [](const Estimate& each) {
    return fmt::format("[{:.4f}, {:.4f}, {:.4f}]", each.value, each.low, each.high);
  };
  std::vector<double> epsilon, delta, kl, agreement;
  std::vector<std::string> speedup, surprisal;
  for (const TypicalPoint& point : sweep.points) {
    epsilon.push_back(point.epsilon);
    delta.push_back(point.delta);
    kl.push_back(point.kl);
    agreement.push_back(point.agreement);
    speedup.push_back(estimate(point.speedup));
    surprisal.push_back(estimate(point.surprisal));
  }
  return fmt::format(
      "typical:\n  temperature: {}\n  chosen: {}\n  plain_surprisal: {}\n  epsilon: {}\n"
      "  delta: {}\n  speedup: [{}]\n  surprisal: [{}]\n  kl: {}\n  agreement: {}\n",
      number_text(sweep.temperature), sweep.chosen, estimate(sweep.plain_surprisal),
      numbers_text(epsilon, 4), numbers_text(delta, 4), fmt::join(speedup, ", "),
      fmt::join(surprisal, ", "), numbers_text(kl, 4), numbers_text(agreement, 4));
}

[[noreturn]] void fail_import(const std::filesystem::path& file, const std::string& found) {
  throw UserError(fmt::format(
      "{}: {}, expected a list of paths like [[0], [0, 1]], or names with such lists; pass another "
      "file or name",
      file.string(), found));
}

/// @param found  what the file holds in place of a list of paths.
std::vector<RankPath> read_paths(const nlohmann::json& list, const std::filesystem::path& file,
                                 const std::string& found) {
  if (!list.is_array()) fail_import(file, found);
  std::vector<RankPath> paths;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_array()) fail_import(file, found);
    RankPath& path = paths.emplace_back();
    for (const nlohmann::json& rank : list[i]) {
      // The library would convert 1.99, true and 2^32 + 1 to 1.
      if (!rank.is_number_unsigned() || rank.get<uint64_t>() > uint64_t{kMostRank})
        throw UserError(
            fmt::format("{}: path {} of the list has the rank {}, expected whole numbers from 0 to "
                        "{}; mend the path",
                        file.string(), i, json_text(rank), kMostRank));
      path.push_back(rank.get<int32_t>());
    }
  }
  return paths;
}

/// Python's tuples as JSON: (0, 1) -> [0, 1] and (0,) -> [0].
std::string tuples_as_json(const std::string& text) {
  std::string json;
  for (const char c : text) {
    if (c != ')' && c != ']') {
      json += c == '(' ? '[' : c;
      continue;
    }
    const size_t last = json.find_last_not_of(" \n\t");
    if (last != std::string::npos && json[last] == ',') json.erase(last);
    json += ']';
  }
  return json;
}

}  // namespace

ChoiceTree read_choice_tree(const std::filesystem::path& file) {
  if (file.extension() == ".json") return import_choice_tree(file, "");
  const YamlFile yaml(file);
  const TreeFields fields = read_fields(yaml, file);
  const YAML::Node nodes = yaml.root()["nodes"];
  ChoiceTree tree = make_choice_tree(fields.nodes, fields.top_k,
                                     [&](size_t i) { return yaml.place("nodes", nodes[i]); });
  tree.source = fields.source;
  tree.heads = fields.heads;
  tree.drafter = fields.drafter;
  tree.temperatures = fields.temperatures;
  if (fields.expected_tokens_per_step) {
    const double value = *fields.expected_tokens_per_step;
    tree.expected_tokens_per_step = fields.interval.empty()
                                        ? Estimate{value, value, value}
                                        : Estimate{value, fields.interval[0], fields.interval[1]};
  }
  tree.calibration = fields.calibration.value();
  tree.typical = fields.typical.value();
  return tree;
}

void write_choice_tree(const std::filesystem::path& file, const ChoiceTree& tree,
                       const std::string& comment) {
  std::string text;
  for (size_t begin = 0; begin < comment.size();) {
    const size_t end = std::min(comment.find('\n', begin), comment.size());
    text += "# " + comment.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  text += fmt::format("format: {}\nversion: {}\n", kTreeFormat, kTreeVersion);
  YAML::Emitter source;
  source << YAML::DoubleQuoted << tree.source;
  if (!tree.source.empty()) text += fmt::format("source: {}\n", source.c_str());
  if (!tree.heads.empty()) text += fmt::format("heads: {}\n", tree.heads);
  if (!tree.drafter.empty()) text += fmt::format("drafter: {}\n", tree.drafter);
  text += fmt::format("top_k: {}\n", tree.top_k);
  if (const auto& expected = tree.expected_tokens_per_step)
    text += fmt::format(
        "expected_tokens_per_step: {:.6f}\nexpected_tokens_per_step_95: [{:.6f}, {:.6f}]\n",
        expected->value, expected->low, expected->high);
  if (!tree.temperatures.empty())
    text += fmt::format("temperatures: {}\n", numbers_text(tree.temperatures, 4));
  text += "nodes:" + list_text(tree.paths, "  ", path_text);
  if (tree.calibration) text += calibration_text(*tree.calibration);
  if (tree.typical) text += typical_text(*tree.typical);
  write_file(file, text);
}

ChoiceTree import_choice_tree(const std::filesystem::path& file, const std::string& name) {
  const std::string text = read_file(file);
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) json = nlohmann::json::parse(tuples_as_json(text), nullptr, false);
  if (json.is_discarded()) fail_import(file, "it is neither JSON nor a list of tuples");
  std::string source;
  if (json.is_object()) {
    if (!json.contains(name)) fail_import(file, fmt::format("no tree is named '{}'", name));
    json = nlohmann::json(json[name]);
    if (json.is_object()) {
      const auto named = json.find("source");
      if (named != json.end() && named->is_string()) source = named->get<std::string>();
      json = nlohmann::json(json.value("paths", nlohmann::json()));
    }
  }
  ChoiceTree tree = make_choice_tree(
      read_paths(json, file,
                 name.empty() ? "it holds something else" : "'" + name + "' is something else"),
      0, file.string());
  tree.source = source;
  return tree;
}

}  // namespace medusa
