#include "tools/drafting.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "backbone/cuda/cuda_llama.h"
#include "backbone/files/load_weights.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "heads/heads_checkpoint.h"
#include "tools/draft_folder.h"
#include "tools/layer_choice.h"
#include "tools/measure/row_timer.h"
#include "tools/same_tokenizer.h"

namespace medusa {
namespace {

std::unique_ptr<TextStore> load_store(const RunConfig& config, const Tokenizer& tokenizer,
                                      int64_t vocab_size) {
  if (!std::filesystem::exists(config.store_file()))
    throw UserError(fmt::format(
        "{}: no such file, expected the texts that the retrieval drafter looks up; build it with "
        "medusa build-store",
        config.store_file().string()));
  auto store = std::make_unique<TextStore>(config.store_file());
  if (store->info().tokenizer != tokenizer.fingerprint())
    throw UserError(fmt::format(
        "{}: its texts are tokens of tokenizer {}, the one in {} has {}; build the store again "
        "with medusa build-store, or give another one with generate.retrieval.store",
        store->path().string(), short_fingerprint(store->info().tokenizer), config.backbone.model,
        short_fingerprint(tokenizer.fingerprint())));
  if (store->max_token() >= vocab_size)
    throw UserError(fmt::format(
        "{}: holds token {}, expected ids below the {} of the model in {}; build the store again "
        "with medusa build-store, or give another one with generate.retrieval.store",
        store->path().string(), store->max_token(), vocab_size, config.backbone.model));
  return store;
}

/// The layers that do not draft, as the settings say or as calibration found.
std::vector<int64_t> skipped_layers(const RunConfig& config, const Llama& llama) {
  const std::vector<int64_t>& listed = config.generate.infer.layer_skip.skip;
  return listed.empty() ? read_layer_choice(config.layers_file(), llama.weights().fingerprint).skip
                        : listed;
}

/// The draft model, after a look at whether it fits.
std::unique_ptr<Llama> load_draft(const RunConfig& config, const Session& session) {
  const std::filesystem::path folder = config.draft_folder();
  if (!std::filesystem::exists(folder))
    throw UserError(fmt::format(
        "{}: not found, expected a draft model; make one with medusa make-draft, or name one with "
        "generate.draft_model.model",
        folder.string()));
  const auto manifest = read_draft_manifest(folder);
  if (manifest && !std::filesystem::exists(folder / "tokenizer.json")) {
    if (manifest->tokenizer != session.tokenizer->fingerprint())
      throw UserError(fmt::format(
          "{}: it was made with tokenizer {}, the one in {} has {}; make it again with medusa "
          "make-draft, or give another one with generate.draft_model.model",
          folder.string(), short_fingerprint(manifest->tokenizer), config.backbone.model,
          short_fingerprint(session.tokenizer->fingerprint())));
  } else {
    check_same_tokenizer(*session.tokenizer, config.backbone.model, *load_tokenizer(folder),
                         folder.string());
  }
  const Llama& target = *session.llama;
  WeightsReader reader(folder, target.dtype(), target.device(), target.weights().kind);
  return std::make_unique<Llama>(reader, target.execution());
}

/// @param num_slots  sequences that are drafted for at the same time.
void add_draft(const RunConfig& config, const Session& session, int32_t num_slots,
               LoadedDrafting& out) {
  out.draft_llama = load_draft(config, session);
  const int64_t context = std::min(session.context, out.draft_llama->config().context);
  out.draft = std::make_unique<SecondModel>(*out.draft_llama, num_slots, context,
                                            session.llama->config().vocab_size);
}

}  // namespace

LoadedDrafting load_drafting(const RunConfig& config, const InferConfig& infer,
                             const Session& session, BackboneTarget& target,
                             std::shared_ptr<const StepCost> cost) {
  LoadedDrafting out;
  const DraftNeeds needs = needs_of(infer);
  const Llama& llama = *session.llama;
  std::optional<ChoiceTree> tree;
  if (needs.tree) tree = read_choice_tree(config.tree_file());
  if (needs.store) out.store = load_store(config, *session.tokenizer, llama.config().vocab_size);
  if (needs.draft) add_draft(config, session, target.num_free_slots(), out);
  if (needs.skipping)
    out.skipping = std::make_unique<SkippingModel>(target, skipped_layers(config, llama));
  if (needs.cost)
    out.cost =
        cost ? std::move(cost) : std::make_shared<StepCost>(measured_step_cost(config, session));
  if (needs.drafting_cost && !out.cost->drafting)
    throw UserError(fmt::format(
        "{}: holds no times of steps of {}, expected some for a tree that adapts; run medusa "
        "calibrate, or set generate.medusa.adaptive to false",
        config.tree_file().string(), machine_text(llama)));
  if (!needs.heads) return out;
  LoadedHeads loaded = load_heads(config.heads_folder(), llama.weights());
  out.heads = loaded.manifest.fingerprint;
  int64_t top_k = needs.guesses;
  if (tree) {
    check_tree_fits(*tree, loaded.heads.config.num_heads, out.heads, config.tree_file());
    top_k = std::max<int64_t>(top_k, tree->top_k);
    out.shape = std::make_unique<TreeShape>(tree->shape());
    out.nodes = tree->num_nodes();
  }
  out.guesser =
      std::make_unique<HeadGuesser>(loaded.heads, llama.weights(), top_k, llama.execution());
  if (as_cuda(session.llama->backend()) != nullptr)
    out.device_heads = std::make_unique<MedusaHeads>(std::move(loaded.heads));
  return out;
}

}  // namespace medusa
