// What calibration and generation make, and the settings of a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/yaml_fields.h"
#include "heads/tree/choice_tree.h"
#include "infer/drafters/text_store.h"
#include "runtime/bench/conditions.h"
#include "runtime/bench/sample.h"
#include "runtime/draft_folder.h"
#include "runtime/layer_choice.h"
#include "tools/inspect/inspectors.h"
#include "tools/report/reported_comparison.h"
#include "tools/report/tree_picture.h"
#include "tools/run/run_config.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// Share of positions at which one of the head's first n drafts is right.
double share_of_first(const std::vector<double>& by_rank, size_t n) {
  double sum = 0;
  for (size_t rank = 0; rank < std::min(n, by_rank.size()); ++rank) sum += by_rank[rank];
  return sum;
}

void add_calibration(Json& out, const TreeCalibration& calibration) {
  out["calibration"] = {{"machine", calibration.machine},
                        {"context_tokens", calibration.context},
                        {"num_positions", calibration.num_positions},
                        {"num_answers", calibration.num_answers}};
  Json heads = Json::array();
  for (size_t k = 0; k < calibration.head_accuracy.size(); ++k) {
    const auto& by_rank = calibration.head_accuracy[k];
    heads.push_back({{"head", k},
                     {"top_1", share_of_first(by_rank, 1)},
                     {"top_5", share_of_first(by_rank, 5)},
                     {"top_10", share_of_first(by_rank, 10)}});
  }
  out["head_accuracy"] = std::move(heads);
  Json sizes = Json::array();
  for (const TreeSizePoint& size : calibration.sizes)
    sizes.push_back(
        {{"nodes", size.num_nodes},
         {"tokens_per_step", size.tokens_per_step},
         {"step_ms", size.step_ms},
         {"tokens_per_s", size.step_ms > 0 ? 1000 * size.tokens_per_step / size.step_ms : 0}});
  out["sizes"] = std::move(sizes);
  Json drafters = Json::array();
  for (const DrafterSpeed& each : calibration.drafters)
    drafters.push_back({{"drafter", each.drafter},
                        {"speedup", each.speedup.value},
                        {"low", each.speedup.low},
                        {"high", each.speedup.high}});
  if (!drafters.empty()) out["drafters"] = std::move(drafters);
}

Json estimate_json(const Estimate& estimate) {
  return {{"value", estimate.value}, {"low", estimate.low}, {"high", estimate.high}};
}

Json typical_json(const TypicalSweep& sweep) {
  Json points = Json::array();
  for (const TypicalPoint& point : sweep.points)
    points.push_back({{"epsilon", point.epsilon},
                      {"delta", point.delta},
                      {"speedup", estimate_json(point.speedup)},
                      {"surprisal", estimate_json(point.surprisal)},
                      {"kl", point.kl},
                      {"agreement", point.agreement}});
  const TypicalPoint& chosen = sweep.points[sweep.chosen];
  return {{"temperature", sweep.temperature},
          {"epsilon", chosen.epsilon},
          {"delta", chosen.delta},
          {"plain_surprisal", estimate_json(sweep.plain_surprisal)},
          {"points", std::move(points)}};
}

}  // namespace

Json inspect_tree(const fs::path& file) {
  const ChoiceTree tree = read_choice_tree(file);
  Json out;
  out["summary"] =
      fmt::format("{} node{}, {} head{} deep", tree.num_nodes(), tree.num_nodes() == 1 ? "" : "s",
                  tree.depth(), tree.depth() == 1 ? "" : "s");
  if (tree.expected_tokens_per_step)
    out["summary"] =
        fmt::format("{}, {:.2f} tokens per step expected", out["summary"].get<std::string>(),
                    tree.expected_tokens_per_step->value);
  out["num_nodes"] = tree.num_nodes();
  out["depth"] = tree.depth();
  out["top_k"] = tree.top_k;
  if (!tree.source.empty()) out["source"] = tree.source;
  if (!tree.drafter.empty()) out["drafter"] = tree.drafter;
  out["heads"] = tree.heads.empty() ? Json(nullptr) : Json(tree.heads);
  if (const auto& expected = tree.expected_tokens_per_step)
    out["expected_tokens_per_step"] = estimate_json(*expected);
  if (tree.calibration) add_calibration(out, *tree.calibration);
  if (tree.typical) out["typical"] = typical_json(*tree.typical);
  const std::vector<double> shares = path_shares(tree);
  Json paths = Json::array();
  for (size_t i = 0; i < tree.paths.size(); ++i) {
    Json row{{"path", tree.paths[i]}};
    if (!shares.empty()) row["right"] = shares[i + 1];
    paths.push_back(std::move(row));
  }
  out["paths"] = std::move(paths);
  return out;
}

Json inspect_text_store(const fs::path& file) {
  const TextStore store(file);
  const TextStoreInfo& info = store.info();
  Json out;
  out["summary"] = fmt::format("{} texts, {} tokens", info.num_texts, store.num_tokens());
  out["num_texts"] = info.num_texts;
  out["num_tokens"] = store.num_tokens();
  out["samples"] = info.samples;
  out["tokenizer"] = info.tokenizer;
  out["dataset"] = info.dataset;
  return out;
}

Json inspect_draft_model(const fs::path& folder) {
  const DraftManifest manifest = read_draft_manifest(folder).value();
  Json out = inspect_hugging_face(folder);
  out["summary"] = fmt::format("layers {} of the backbone, agrees with it in {:.1f} % of places",
                               fmt::join(manifest.layers, " "), 100 * manifest.agreement);
  out.update(draft_json(manifest));
  return out;
}

Json inspect_layer_choice(const fs::path& file) {
  const LayerChoice choice = read_layer_choice(file);
  Json out;
  out["summary"] = fmt::format("without layers {}: {:.2f} times as fast is expected",
                               fmt::join(choice.skip, " "), choice.speedup);
  out.update(layer_choice_json(choice));
  return out;
}

Json inspect_comparison(const fs::path& file) {
  const ReportedComparison comparison = read_comparison(file);
  Json methods = Json::array();
  double fastest = 0;
  for (const ReportedMethod& method : comparison.methods) {
    if (!method.plain()) fastest = std::max(fastest, method.speedup);
    methods.push_back({{"method", method.name()},
                       {"tokens_per_s", method.tokens_per_s},
                       {"tokens_per_step", method.tokens_per_step},
                       {"step_overhead", method.step_overhead},
                       {"speedup", method.speedup},
                       {"same_text", method.same_text ? Json(*method.same_text) : Json(nullptr)},
                       {"num_prompts", method.num_prompts}});
  }
  Json out;
  out["summary"] = fmt::format("{} methods, largest speed-up {:.2f} x", methods.size(), fastest);
  out["complete"] = comparison.complete;
  out["dtype"] = comparison.dtype;
  out["machine"] = comparison.machine;
  out["backbone"] = comparison.backbone;
  out["methods"] = std::move(methods);
  out["settings"] = comparison.settings;
  return out;
}

Json inspect_bench(const fs::path& file) {
  const Conditions conditions = read_conditions(file);
  Json out;
  try {
    const Json bench = Json::parse(read_file(file));
    Json rows = Json::array();
    for (const Json& row : bench.at("rows")) {
      if (!row.at("category").is_null()) continue;  // a part of the questions
      Json& shown = rows.emplace_back();
      for (const char* key : {"method", "temperature", "tokens_per_s", "tokens_per_step", "speedup",
                              "same_text", "num_questions"})
        shown[key] = row.at(key);
    }
    out["summary"] = fmt::format("{} methods over {} questions", rows.size(),
                                 bench.at("num_questions").get<int64_t>());
    out["complete"] = bench.at("complete");
    for (const auto& [name, value] : conditions) out["conditions"][name] = value;
    out["methods"] = std::move(rows);
  } catch (const Json::exception& error) {
    throw UserError(
        fmt::format("{}: {}, expected the summary that medusa bench writes; run it again",
                    file.string(), json_error_text(error.what())));
  }
  return out;
}

Json inspect_bench_answers(const fs::path& file) {
  std::map<std::string, int64_t> by_method;
  int64_t tokens = 0;
  for (const BenchSample& sample : read_samples(file)) {
    ++by_method[fmt::format("{}, temperature {}", sample.method, sample.temperature)];
    tokens += sample.emitted();
  }
  Json out;
  out["summary"] = fmt::format("{} methods, {} tokens", by_method.size(), tokens);
  out["tokens"] = tokens;
  out["questions_answered"] = by_method;
  return out;
}

Json inspect_profile(const fs::path& file) {
  Json out;
  try {
    const Json profile = Json::parse(read_file(file));
    Json steps = Json::array();
    for (const Json& step : profile.at("steps"))
      steps.push_back({{"context", step.at("context")},
                       {"rows", step.at("rows")},
                       {"step_ms", step.at("step_ms")}});
    out["summary"] = fmt::format("{} steps, {:.2f} to {:.2f} ms", steps.size(),
                                 steps.at(0).at("step_ms").get<double>(),
                                 steps.at(steps.size() - 1).at("step_ms").get<double>());
    for (const char* key : {"machine", "backbone", "repeats", "drafted", "roof"})
      out[key] = profile.at(key);
    out["steps"] = std::move(steps);
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("{}: {}, expected what medusa profile writes; run it again",
                                file.string(), json_error_text(error.what())));
  }
  return out;
}

Json inspect_settings(const fs::path& file) {
  RunConfig config = read_config<RunConfig>(YamlFile(file));
  FieldLister lister;
  config.fields(lister);
  Json out;
  out["summary"] = "run " + config.run + ", model " + config.backbone.model;
  Json values = Json::object();
  for (const FieldHelp& line : lister.lines()) values[line.key] = line.value;
  out["settings"] = std::move(values);
  return out;
}

}  // namespace medusa
