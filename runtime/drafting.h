// What a drafter needs, loaded as the settings ask: heads, choice tree, text store, draft model.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer/tokenizer.h"
#include "heads/eagle3/eagle3_model.h"
#include "heads/heads_runner.h"
#include "heads/tree/choice_tree.h"
#include "infer/draft_models/second_model.h"
#include "infer/draft_models/skipping_model.h"
#include "infer/drafters/text_store.h"
#include "infer/factory.h"
#include "infer/step_cost.h"
#include "runtime/draft_folder.h"
#include "runtime/model.h"

namespace medusa {

struct LoadedDrafting {
  std::unique_ptr<HeadsRunner> runner;        // null when the drafter needs none
  std::unique_ptr<MedusaHeads> device_heads;  // that it was made of, where a GPU decodes by itself
  std::unique_ptr<TreeShape> shape;
  std::unique_ptr<TextStore> store;
  std::unique_ptr<Llama> draft_llama;
  std::unique_ptr<SecondModel> draft;  // over draft_llama
  std::unique_ptr<SkippingModel> skipping;
  std::unique_ptr<Eagle3Model> eagle3;
  std::shared_ptr<const StepCost> cost;
  std::string heads;         // fingerprint
  int32_t nodes = 1;         // N
  bool tree_adapts = false;  // where the settings leave it open: several sequences share the steps
                             // of the CPU that calibrated the tree

  DraftParts parts() const {
    return {.runner = runner.get(),
            .shape = shape.get(),
            .store = store.get(),
            .cost = cost.get(),
            .draft = draft.get(),
            .skipping = skipping.get(),
            .eagle3 = eagle3.get(),
            .heads = device_heads.get(),
            .tree_adapts = tree_adapts};
  }
};

/// @param infer   names the drafter; files says where its parts lie.
/// @param target  that will decode; a drafter may draft on it, and a draft model drafts for as many
///                sequences as it has free slots. Must outlive the result.
/// @param cost    what rows cost, measured before; null: as the tree file has it of this machine,
/// or
///                measured now, if it is needed.
/// @throws UserError  a part is missing, damaged, or does not fit the model or the others.
LoadedDrafting load_drafting(const DraftFiles& files, const InferConfig& infer, const Model& model,
                             BackboneTarget& target,
                             std::shared_ptr<const StepCost> cost = nullptr);

/// Says whether a draft model speaks of the same tokens: compares every token's bytes and whether
/// it is special.
/// @param target, draft        the tokenizers
/// @param target_name, draft_name  what messages call their models
/// @throws UserError  names the first token that differs.
void check_same_tokenizer(const Tokenizer& target, const std::string& target_name,
                          const Tokenizer& draft, const std::string& draft_name);

}  // namespace medusa
