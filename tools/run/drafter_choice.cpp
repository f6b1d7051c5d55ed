#include "tools/run/drafter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "backbone/files/model_files.h"
#include "base/error.h"
#include "base/output.h"
#include "heads/eagle3/eagle3_folder.h"
#include "heads/heads_checkpoint.h"
#include "heads/tree/choice_tree.h"
#include "infer/factory.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

void check_tree(const RunConfig& config, const std::string& drafter) {
  const fs::path file = config.tree_file();
  if (!fs::exists(file))
    throw UserError(fmt::format(
        "{}: no such file, expected the choice tree that drafter '{}' fills; make it with medusa "
        "calibrate, or decode without: --drafter prompt_lookup",
        file.string(), drafter));
  const HeadsManifest heads = read_heads_manifest(config.heads_folder());
  check_tree_fits(read_choice_tree(file), heads.config.num_heads, heads.fingerprint, file);
}

/// Nothing: there is no tree, or no drafter was tried with it.
std::optional<DrafterKind> fastest_drafter(const fs::path& tree) {
  if (!fs::exists(tree)) return std::nullopt;  // whoever needs it refuses it later
  const std::string name = read_choice_tree(tree).drafter;
  if (name.empty()) return std::nullopt;
  for (const auto& [known, kind] : EnumNames<DrafterKind>::values)
    if (name == known) return kind;
  throw UserError(
      fmt::format("{}: 'drafter' is '{}', expected one of {}; calibrate again, or remove the line",
                  tree.string(), name, enum_choices<DrafterKind>()));
}

/// @param is_named  the user chose the drafter.
void join_shared(InferConfig& infer, bool is_named) {
  std::vector<DrafterKind>& merged = infer.merge.drafters;
  if (infer.drafter == DrafterKind::Medusa && !is_named) infer.drafter = DrafterKind::Merge;
  if (infer.drafter == DrafterKind::PromptLookup && !is_named) {
    infer.drafter = DrafterKind::Merge;
    merged = {DrafterKind::PromptLookup};
  }
  if (std::find(merged.begin(), merged.end(), DrafterKind::Shared) == merged.end())
    merged.push_back(DrafterKind::Shared);
}

}  // namespace

DrafterKind chosen_drafter(const RunConfig& config, DrafterKind with_heads,
                           DrafterKind without_heads, const SameRunCommand& command) {
  if (config.generate.names_drafter) return config.generate.infer.drafter;
  const bool names_parts = config.generate.heads || config.generate.tree;
  const bool trained = fs::exists(config.heads_folder());  // damaged ones are refused later
  const bool calibrated = trained && fs::exists(config.tree_file());
  if (calibrated) check_tree(config, "auto");  // one of other heads says nothing about these
  if (names_parts || calibrated) {
    const DrafterKind fastest = fastest_drafter(config.tree_file()).value_or(with_heads);
    if (fastest == DrafterKind::None)
      print_note("note: {}: decoding is plain, which calibration found the fastest; {}\n",
                 config.tree_file().string(), "--drafter merge decodes with the heads");
    return fastest;
  }
  const bool has_text = !config.train.data.empty() || fs::exists(config.dataset_folder());
  const std::string maker = !trained   ? command("run")
                            : has_text ? command("calibrate")
                                       : command("distill") + ", then " + command("calibrate");
  print_note("note: {} has no {}, so {}; this makes them: {}\n", config.run,
             trained ? "choice tree for its heads" : "trained heads",
             without_heads == DrafterKind::None ? "decoding is plain" : "lookup alone drafts",
             maker);
  return without_heads;
}

void take_calibrated_thresholds(const RunConfig& config, InferConfig& infer) {
  const fs::path file = config.tree_file();
  if (config.generate.names_thresholds || !fs::exists(file)) return;
  const ChoiceTree tree = read_choice_tree(file);
  if (!tree.typical) return;
  const TypicalPoint& point = tree.typical->points[tree.typical->chosen];
  infer.typical = {point.epsilon, point.delta};
  if (infer.rule == RuleKind::Typical)
    print_note("note: epsilon {} and delta {}, as {} has them from medusa calibrate --typical\n",
               number_text(point.epsilon), number_text(point.delta), file.string());
}

void check_heads(const RunConfig& config) {
  const fs::path folder = config.heads_folder();
  if (!fs::exists(folder))
    throw UserError(fmt::format(
        "{}: not found, expected trained heads; make them with medusa train (medusa run does all "
        "it takes), name others with --heads, or decode without: --drafter prompt_lookup",
        folder.string()));
  const HeadsManifest heads = read_heads_manifest(folder);
  const ModelConfig model = open_model_files(config.backbone.model).config;
  if (heads.hidden_size != model.hidden_size || heads.vocab_size != model.vocab_size)
    throw UserError(fmt::format(
        "{}: heads for states of {} numbers and {} tokens, the model in {} has {} and {}, expected "
        "heads of this model; train them with medusa train, or name others with --heads",
        folder.string(), heads.hidden_size, heads.vocab_size, config.backbone.model,
        model.hidden_size, model.vocab_size));
}

void check_drafting(const RunConfig& config, const InferConfig& infer, bool shares) {
  const DraftNeeds needs = needs_of(infer);
  const std::string drafter = enum_name(infer.drafter);
  if (needs.shared && !shares)
    throw UserError(fmt::format(
        "generate.drafter is '{}' with what others were answered (drafter 'shared'), found a "
        "command that keeps no answers, expected medusa serve without --no-share; choose another "
        "drafter{}",
        drafter,
        infer.drafter == DrafterKind::Merge ? ", or leave it out of generate.merge.drafters" : ""));
  if (needs.heads) check_heads(config);
  if (needs.tree) check_tree(config, drafter);
  if (needs.store && !fs::exists(config.store_file()))
    throw UserError(fmt::format(
        "{}: no such file, expected the texts that the retrieval drafter looks up; build it with "
        "medusa build-store",
        config.store_file().string()));
  if (needs.draft && !fs::exists(config.draft_folder()))
    throw UserError(fmt::format(
        "{}: not found, expected a draft model; make one with medusa make-draft, or name one with "
        "generate.draft_model.model",
        config.draft_folder().string()));
  if (needs.eagle3) {
    read_eagle3_manifest(config.eagle3_folder());
    feature_layers_for(read_eagle3_files(config.eagle3_folder()),
                       open_model_files(config.backbone.model).config);
  }
}

InferConfig conversation_decoding(const RunConfig& config, const SameRunCommand& command,
                                  bool shares) {
  InferConfig infer = config.generate.infer;
  infer.drafter = chosen_drafter(config, DrafterKind::Merge, DrafterKind::PromptLookup, command);
  take_calibrated_thresholds(config, infer);
  if (shares) join_shared(infer, config.generate.names_drafter);
  infer.validate();
  check_drafting(config, infer, shares);
  return infer;
}

}  // namespace medusa
