// The heads' stage (Medusa-1, arXiv:2401.10774 §2.2.1): from a dataset to a folder of heads.
#pragma once

#include "train/samples/train_inputs.h"
#include "train/train_loop.h"

namespace medusa {

/// Trains heads and saves them. Samples that only judge the heads are those of
/// data/dataset/sample_order.h's split_dataset(Random(config.seed), dataset,
/// config.validation_fraction). Resumes and ends as run_stage() does (train_loop.h). The heads of a
/// finished run are saved again from its checkpoint.
///
/// @throws UserError  as check_inputs(), check_heads_place() (record/heads_place.h), open_hidden()
///                    and run_stage() do; nothing to train on.
TrainResult train_heads(const TrainConfig& config, const HeadsConfig& heads,
                        const TrainInputs& inputs);

}  // namespace medusa
