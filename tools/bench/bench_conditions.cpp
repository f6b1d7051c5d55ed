#include "tools/bench/bench_conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "backbone/files/model_files.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "base/yaml_fields.h"
#include "heads/eagle3/eagle3_folder.h"
#include "heads/heads_checkpoint.h"
#include "heads/tree/choice_tree.h"
#include "infer/factory.h"
#include "runtime/layer_choice.h"
#include "tools/measure/resources.h"

namespace medusa {
namespace {

/// What a tree drafts: its counts and times may be measured again.
std::string tree_text(const std::filesystem::path& file) {
  const ChoiceTree tree = read_choice_tree(file);
  Fingerprint all;
  for (const RankPath& path : tree.paths) all.add(path_text(path));
  for (const double temperature : tree.temperatures) all.add(number_text(temperature));
  return fmt::format("{} nodes ({})", tree.num_nodes(), short_fingerprint(all.digest()));
}

/// The settings of a drafter's section that are not the usual ones.
std::string section_text(const YAML::Node& section, const YAML::Node& usual) {
  std::vector<std::string> others;
  for (const auto& entry : section) {
    const auto name = entry.first.as<std::string>();
    const std::string value = YAML::Dump(entry.second);
    if (value != YAML::Dump(usual[name])) others.push_back(name + " " + value);
  }
  return others.empty() ? "the usual ones" : fmt::format("{}", fmt::join(others, ", "));
}

/// The drafters whose settings the plan's methods read.
std::set<std::string> sections_of(const RunConfig& config, const BenchPlan& plan) {
  std::set<std::string> out;
  for (const DrafterKind kind : plan.methods) {
    out.insert(enum_name(kind));
    if (kind != DrafterKind::Merge) continue;
    for (const DrafterKind merged : config.generate.infer.merge.drafters)
      out.insert(enum_name(merged));
  }
  return out;
}

void add_settings(const RunConfig& config, const BenchPlan& plan, Conditions& out) {
  InferConfig infer = config.generate.infer;
  infer.retrieval.store = {};  // what lies there counts
  infer.draft_model.model = {};
  infer.eagle3.draft = {};
  const YAML::Node all = YAML::Load(write_config(infer));
  const YAML::Node usual = YAML::Load(write_config(InferConfig{}));
  for (const std::string& name : sections_of(config, plan))
    if (all[name]) out.emplace_back("settings of " + name, section_text(all[name], usual[name]));
}

}  // namespace

Conditions bench_conditions(const RunConfig& config, const Model& model,
                            const std::vector<Prompt>& questions, int32_t slots) {
  const Llama& llama = *model.llama;
  const InferConfig& infer = config.generate.infer;
  Fingerprint asked;
  for (const Prompt& question : questions) {
    for (const ChatMessage& message : question.messages) asked.add(message.content).add(0);
    for (const std::string& turn : question.later_turns) asked.add(turn).add(1);
    asked.add(2);
  }
  return {
      {"model", llama.weights().fingerprint},
      {"dtype", llama.dtype_name()},
      {"threads", std::to_string(num_threads(llama))},
      {"slots", std::to_string(slots)},
      {"machine", machine_text(llama)},
      {"context", std::to_string(model.context)},
      {"max_new_tokens", std::to_string(infer.max_new_tokens)},
      {"stop", fmt::format("{}", config.generate.stop)},
      {"top_k", std::to_string(infer.sampling.top_k)},
      {"top_p", number_text(infer.sampling.top_p)},
      {"seed", std::to_string(config.seed)},
      {"chat_template", model.chat.name()},
      {"questions", fmt::format("{} ({})", questions.size(), short_fingerprint(asked.digest()))}};
}

Conditions method_conditions(const RunConfig& config, const BenchPlan& plan) {
  DraftNeeds needs;
  bool typical = false;
  for (const DrafterKind kind : plan.methods)
    for (const double temperature : plan.temperatures) {
      const InferConfig settings = method_settings(config, plan, kind, temperature);
      needs |= needs_of(settings);
      typical = typical || resolved_rule(settings) == RuleKind::Typical;
    }
  Conditions out{{"min_p", number_text(config.generate.infer.sampling.min_p)},
                 {"graphs", config.generate.infer.graphs ? "true" : "false"}};
  const auto add = [&](bool needed, const char* name, const std::function<std::string()>& value) {
    if (!needed) return;
    try {
      out.emplace_back(name, value());
    } catch (const UserError&) {  // the method that needs it is refused
    }
  };
  add(needs.heads, "heads", [&] { return read_heads_manifest(config.heads_folder()).fingerprint; });
  add(needs.tree, "tree", [&] { return tree_text(config.tree_file()); });
  add(needs.store, "store", [&] { return fingerprint_file(config.store_file()); });
  add(needs.draft, "draft model",
      [&] { return fingerprint_model(open_model_files(config.draft_folder())); });
  add(needs.eagle3, "EAGLE-3 draft",
      [&] { return read_eagle3_manifest(config.eagle3_folder()).fingerprint; });
  add(needs.skipping && config.generate.infer.layer_skip.skip.empty(), "skipped layers",
      [&] { return fmt::format("{}", read_layer_choice(config.layers_file()).skip); });
  add(typical, "typical acceptance", [&] {
    const TypicalConfig& at = config.generate.infer.typical;
    return fmt::format("epsilon {}, delta {}", number_text(at.epsilon), number_text(at.delta));
  });
  add_settings(config, plan, out);
  return out;
}

}  // namespace medusa
