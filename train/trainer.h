// The training loop: next batch, loss, step, report, save. Paper: Medusa (arXiv:2401.10774) §2.2.1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backbone/llama.h"
#include "data/dataset_reader.h"
#include "heads/heads_checkpoint.h"
#include "heads/heads_config.h"
#include "train/hidden_source.h"
#include "train/train_config.h"

namespace medusa {

struct TrainInputs {
  const DatasetReader& dataset;
  const Weights& backbone;  // its dtype is what training computes in; only embedding and LM head
                            // are read
  Llama* llama = nullptr;   // the same backbone ready to run; needed when states are not cached
  std::filesystem::path heads_folder;  // the result
  std::filesystem::path work_folder;   // checkpoint/ and metrics.jsonl; a run found here is resumed
  std::string settings;                // resolved settings of the whole run, kept in the manifest
};

/// Recorded states where there are some, unless the settings say otherwise; else the llama's.
/// @throws UserError  neither is there.
HiddenSource open_hidden(const TrainConfig& config, const TrainInputs& inputs);

struct TrainResult {
  bool complete = false;  // false: interrupted; the checkpoint holds everything so far
  int64_t steps = 0;      // optimiser steps behind the heads, those of earlier runs included
  double loss = 0;        // weighted, of the last step
  std::vector<HeadQuality> validation;  // [K]; empty without validation samples or if interrupted
  int64_t positions = 0;                // trained on in this run
  double seconds = 0;                   // of this run
};

/// Trains heads and saves them. Samples that only judge the heads are those of
/// data/sample_order.h's split_samples(Random(config.seed), dataset.size(),
/// config.validation_fraction). Continues a checkpoint in work_folder if there is one; the heads
/// then are bit for bit those of an unbroken run (same machine, same number of threads). Ends after
/// the current step, with a checkpoint, when interrupted() says so. A finished run is not repeated:
/// its heads are saved again from the checkpoint.
///
/// @throws UserError  dataset of another backbone; no states in the dataset and no llama; nothing
/// to
///                    train on; output_size above V; a checkpoint of other settings; a folder that
///                    cannot be written.
TrainResult train_heads(const TrainConfig& config, const HeadsConfig& heads,
                        const TrainInputs& inputs);

}  // namespace medusa
