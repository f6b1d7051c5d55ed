// The training loop: next batch, loss, step, report, save. Paper: Medusa (arXiv:2401.10774) §2.2.1.
#pragma once

#include <cstdint>
#include <vector>

#include "heads/heads_checkpoint.h"
#include "train/samples/train_inputs.h"

namespace medusa {

struct TrainResult {
  bool complete = false;  // false: interrupted; the checkpoint holds everything so far
  int64_t steps = 0;      // optimiser steps behind the heads, those of earlier runs included; with
                          // keep_best fewer than were done if later ones made them worse
  double loss = 0;        // weighted, of the last step
  std::vector<HeadQuality> validation;  // [K]; empty without validation samples or if interrupted
  int64_t positions = 0;                // trained on in this run
  double seconds = 0;                   // of this run
};

/// Trains heads and saves them. Samples that only judge the heads are those of
/// data/dataset/dataset_mix.h's split_dataset(Random(config.seed), dataset,
/// config.validation_fraction). Continues a checkpoint in work_folder if there is one; the heads
/// then are bit for bit those of an unbroken run (same machine, same number of threads). Ends after
/// the current step, with a checkpoint, when interrupted() says so. A finished run is not repeated:
/// its heads are saved again from the checkpoint.
///
/// @throws UserError  as check_inputs() and open_hidden() do; nothing to train on; a checkpoint of
///                    other settings; a loss that is no number; a folder that cannot be written.
TrainResult train_heads(const TrainConfig& config, const HeadsConfig& heads,
                        const TrainInputs& inputs);

}  // namespace medusa
