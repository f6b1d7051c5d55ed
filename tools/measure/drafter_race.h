// Which drafter decodes fastest with a choice tree on this machine: those that the tree can feed
// take turns on prompts that the heads were not trained on.
#pragma once

#include "data/dataset/dataset_reader.h"
#include "heads/tree/choice_tree.h"
#include "runtime/model.h"
#include "tools/run/run_config.h"

namespace medusa {

/// Decodes validation prompts plainly, with the heads, and with what merges their drafts with
/// others, greedily and by turns, and puts the fastest drafter and all speed-ups into the tree,
/// which has a calibration. Ctrl-C leaves the tree as it is.
/// @param tree  as config.tree_file() holds it.
void race_drafters(const RunConfig& config, const DatasetReader& dataset, const Model& model,
                   ChoiceTree& tree);

}  // namespace medusa
