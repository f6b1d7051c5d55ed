#include "runtime/drafting.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "backbone/cuda/cuda_llama.h"
#include "backbone/files/load_weights.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "base/json_text.h"
#include "heads/eagle3/eagle3_folder.h"
#include "heads/heads_checkpoint.h"
#include "runtime/draft_folder.h"
#include "runtime/layer_choice.h"
#include "runtime/measure/row_timer.h"

namespace medusa {
namespace {

/// A token's bytes on one line: "\n", and what is not UTF-8 replaced.
std::string shown(const Tokenizer& tokenizer, TokenId id) {
  if (id >= tokenizer.vocab_size()) return "not there";
  const std::string text = json_text(nlohmann::json(tokenizer.bytes(id)));
  return text + (tokenizer.is_special(id) ? " (special)" : "");
}

bool same(const Tokenizer& a, const Tokenizer& b, TokenId id) {
  return id < a.vocab_size() && id < b.vocab_size() && a.bytes(id) == b.bytes(id) &&
         a.is_special(id) == b.is_special(id);
}

namespace fs = std::filesystem;

/// The file or folder that is to be read.
/// @param setting  that names it.
const fs::path& named(const fs::path& place, const char* setting, const InferConfig& infer) {
  if (place.empty())
    throw UserError(fmt::format(
        "generate.{}: nothing is named, expected what drafter '{}' reads; name it, or decode with "
        "another drafter",
        setting, enum_name(infer.drafter)));
  return place;
}

std::unique_ptr<TextStore> load_store(const DraftFiles& files, const InferConfig& infer,
                                      const Model& model) {
  const fs::path file =
      named(infer.retrieval.store ? fs::path(*infer.retrieval.store) : files.store,
            "retrieval.store", infer);
  if (!fs::exists(file))
    throw UserError(fmt::format(
        "{}: no such file, expected the texts that the retrieval drafter looks up; build it with "
        "medusa build-store",
        file.string()));
  auto store = std::make_unique<TextStore>(file);
  const std::string tokenizer = model.tokenizer->fingerprint();
  if (store->info().tokenizer != tokenizer)
    throw UserError(fmt::format(
        "{}: its texts are tokens of tokenizer {}, the one in {} has {}; build the store again "
        "with medusa build-store, or give another one with generate.retrieval.store",
        store->path().string(), short_fingerprint(store->info().tokenizer), model.path.string(),
        short_fingerprint(tokenizer)));
  if (store->max_token() >= model.llama->config().vocab_size)
    throw UserError(fmt::format(
        "{}: holds token {}, expected ids below the {} of the model in {}; build the store again "
        "with medusa build-store, or give another one with generate.retrieval.store",
        store->path().string(), store->max_token(), model.llama->config().vocab_size,
        model.path.string()));
  return store;
}

/// The layers that do not draft, as the settings say or as calibration found.
std::vector<int64_t> skipped_layers(const DraftFiles& files, const InferConfig& infer,
                                    const Llama& llama) {
  const std::vector<int64_t>& listed = infer.layer_skip.skip;
  return listed.empty() ? read_layer_choice(named(files.layers, "layer_skip.skip", infer),
                                            llama.weights().fingerprint)
                              .skip
                        : listed;
}

/// The draft model, after a look at whether it fits.
std::unique_ptr<Llama> load_draft(const DraftFiles& files, const InferConfig& infer,
                                  const Model& model) {
  const auto& own = infer.draft_model.model;
  const fs::path folder =
      named(own ? fs::path(*own) : files.draft_model, "draft_model.model", infer);
  if (!fs::exists(folder))
    throw UserError(fmt::format(
        "{}: not found, expected a draft model; make one with medusa make-draft, or name one with "
        "generate.draft_model.model",
        folder.string()));
  const auto manifest = read_draft_manifest(folder);
  if (manifest && !fs::exists(folder / "tokenizer.json")) {
    if (manifest->tokenizer != model.tokenizer->fingerprint())
      throw UserError(fmt::format(
          "{}: it was made with tokenizer {}, the one in {} has {}; make it again with medusa "
          "make-draft, or give another one with generate.draft_model.model",
          folder.string(), short_fingerprint(manifest->tokenizer), model.path.string(),
          short_fingerprint(model.tokenizer->fingerprint())));
  } else {
    check_same_tokenizer(*model.tokenizer, model.path.string(), *load_tokenizer(folder),
                         folder.string());
  }
  const Llama& target = *model.llama;
  WeightsReader reader(folder, target.dtype(), target.device(), target.weights().kind,
                       model.progress);
  return std::make_unique<Llama>(reader, target.execution());
}

std::unique_ptr<Eagle3Model> load_eagle3_model(const DraftFiles& files, const InferConfig& infer,
                                               const Llama& target) {
  const auto& own = infer.eagle3.draft;
  const fs::path folder = named(own ? fs::path(*own) : files.eagle3, "eagle3.draft", infer);
  const Eagle3Files draft = load_eagle3(folder, target.weights().fingerprint);
  return std::make_unique<Eagle3Model>(eagle3_weights(draft, target.config()), target.weights(),
                                       target.execution(), kEagle3MostRows);
}

/// What rows and drafting cost, for a tree that adapts where the settings leave it open: several
/// sequences share the steps of the CPU that calibrated the tree. Null elsewhere: nothing is timed
/// for it, and a single sequence takes the whole tree, which calibration chose for one.
std::shared_ptr<const StepCost> cost_of_batches(const ChoiceTree& tree, const Llama& llama,
                                                const BackboneTarget& target) {
  if (target.num_free_slots() < 2 || !llama.device().is_cpu()) return nullptr;
  std::optional<StepCost> cost = calibrated_here(tree, llama);
  if (!cost || !cost->drafting) return nullptr;
  return std::make_shared<StepCost>(std::move(*cost));
}

/// @param num_slots  sequences that are drafted for at the same time.
void add_draft(std::unique_ptr<Llama> llama, const Model& model, int32_t num_slots,
               LoadedDrafting& out) {
  out.draft_llama = std::move(llama);
  const int64_t context = std::min(model.context, out.draft_llama->config().context);
  out.draft = std::make_unique<SecondModel>(*out.draft_llama, num_slots, context,
                                            model.llama->config().vocab_size);
}

}  // namespace

void check_same_tokenizer(const Tokenizer& target, const std::string& target_name,
                          const Tokenizer& draft, const std::string& draft_name) {
  const auto all = static_cast<TokenId>(std::max(target.vocab_size(), draft.vocab_size()));
  for (TokenId id = 0; id < all; ++id)
    if (!same(target, draft, id))
      throw UserError(
          fmt::format("{}: its token {} is {}, in {} it is {}, expected the same tokenizer; use a "
                      "draft model of the same family, or make one with medusa make-draft",
                      draft_name, id, shown(draft, id), target_name, shown(target, id)));
}

LoadedDrafting load_drafting(const DraftFiles& files, const InferConfig& infer, const Model& model,
                             BackboneTarget& target, std::shared_ptr<const StepCost> cost) {
  LoadedDrafting out;
  const DraftNeeds needs = needs_of(infer);
  const Llama& llama = *model.llama;
  std::optional<ChoiceTree> tree;
  if (needs.tree) tree = read_choice_tree(named(files.tree, "tree", infer));
  if (needs.store) out.store = load_store(files, infer, model);
  if (needs.draft) add_draft(load_draft(files, infer, model), model, target.num_free_slots(), out);
  if (needs.skipping)
    out.skipping = std::make_unique<SkippingModel>(target, skipped_layers(files, infer, llama));
  if (needs.eagle3) out.eagle3 = load_eagle3_model(files, infer, llama);
  if (needs.cost)
    out.cost =
        cost ? std::move(cost) : std::make_shared<StepCost>(measured_step_cost(files.tree, model));
  if (tree) {
    const auto batches = cost_of_batches(*tree, llama, target);
    if (batches && !out.cost) out.cost = batches;
    out.tree_adapts = batches && out.cost->drafting;
  }
  if (needs.drafting_cost && !out.cost->drafting)
    throw UserError(fmt::format(
        "{}: holds no times of steps of {}, expected some for a tree that adapts; run medusa "
        "calibrate, or set generate.medusa.adaptive to false",
        files.tree.string(), machine_text(llama)));
  if (!needs.heads) return out;
  LoadedHeads loaded = load_heads(named(files.heads, "heads", infer), llama.weights());
  out.heads = loaded.manifest.fingerprint;
  int64_t top_k = needs.drafts;
  if (tree) {
    check_tree_fits(*tree, loaded.heads.config.num_heads, out.heads, files.tree);
    top_k = std::max<int64_t>(top_k, tree->top_k);
    out.shape = std::make_unique<TreeShape>(tree->shape());
    out.nodes = tree->num_nodes();
  }
  out.runner =
      std::make_unique<HeadsRunner>(loaded.heads, llama.weights(), top_k, llama.execution());
  if (as_cuda(model.llama->backend()) != nullptr)
    out.device_heads = std::make_unique<MedusaHeads>(std::move(loaded.heads));
  return out;
}

}  // namespace medusa
