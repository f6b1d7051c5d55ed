// Which drafter decodes fastest with a choice tree on this machine: those that the tree can feed
// take turns on prompts that the heads were not trained on.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset/dataset_reader.h"
#include "heads/tree/choice_tree.h"
#include "runtime/model.h"
#include "tools/run/run_config.h"

namespace medusa {

/// The prompts of validation answers, as tokens, that leave room for an answer.
/// @param most  as many at most.
std::vector<std::vector<TokenId>> validation_prompts(const RunConfig& config,
                                                     const DatasetReader& dataset,
                                                     const Model& model, int64_t most,
                                                     int64_t answer_tokens);

/// Decodes validation prompts plainly, with the heads, and with what merges their drafts with
/// others, greedily and by turns, and puts the fastest drafter and all speed-ups into the tree,
/// which has a calibration.
/// @returns  false: interrupted, the tree is as it was.
bool race_drafters(const RunConfig& config, const DatasetReader& dataset, const Model& model,
                   ChoiceTree& tree);

}  // namespace medusa
