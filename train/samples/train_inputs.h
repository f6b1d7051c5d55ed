// What a run that fits heads is given, and what it is refused for before it starts.
#pragma once

#include <filesystem>
#include <string>

#include "backbone/llama.h"
#include "base/progress.h"
#include "data/dataset/dataset_reader.h"
#include "heads/heads_checkpoint.h"
#include "heads/heads_config.h"
#include "train/processes/process_group.h"
#include "train/record/metrics.h"
#include "train/samples/hidden_source.h"
#include "train/train_config.h"
#include "train/train_loop.h"

namespace medusa {

struct TrainInputs {
  const DatasetReader& dataset;
  const Weights& backbone;  // its dtype is what training computes in; only embedding and LM head
                            // are read
  Llama* llama = nullptr;   // the same backbone ready to run; needed when states are not recorded
  std::filesystem::path heads_folder;  // the result
  std::filesystem::path work_folder;   // checkpoint/ and metrics.jsonl; a run found here is resumed
  std::string settings;                // resolved settings of the whole run, kept in the manifest
  Reported reported = {};              // told after each report
  ProcessGroup* group = nullptr;       // processes that train with this one; null: it is alone
  ExecutionContext execution = {};     // of the heads when they are judged
  ProgressFunction progress = {};      // empty: untold
  const LayerWeights* last_layer = nullptr;  // of the backbone; needed by heads that begin as it
  const LoadedHeads* earlier = nullptr;      // heads to begin with; null: untrained ones
  std::string replaceable = {};    // heads of another training in the result's place that may be
                                   // replaced (record/heads_place.h)
  RemoveProgress begin_anew = {};  // as LoopPlace::begin_anew
};

/// @throws UserError  trunk_gradient is set and the heads have no prefix layer.
void check_trunk_gradient(const SharedTrainConfig& config, const HeadsConfig& heads);

/// @throws UserError  keep_best, and no sample is kept out of training that could judge.
void check_keep_best(const TrainConfig& config, const DatasetReader& dataset);

/// @throws UserError  an output is truncated to more tokens than there are; a rank is above H.
void check_heads_fit(const HeadsConfig& heads, const ModelConfig& backbone);

/// @throws UserError  another backbone than the one given wrote the dataset.
void check_backbone(const DatasetReader& dataset, const Weights& backbone);

/// @throws UserError  heads to begin with have other settings than these, but for a correction,
/// which
///                    may be new.
void check_earlier(const HeadsConfig& heads, const HeadsConfig& earlier);

/// @throws UserError  dataset of another backbone; recorded states asked for and not there; as
///                    check_heads_fit(); a share of the gradient for a layer that is not there;
///                    as check_earlier().
void check_inputs(const TrainConfig& config, const HeadsConfig& heads, const TrainInputs& inputs);

/// Recorded states where there are some, unless the settings say otherwise; else the llama's.
/// @throws UserError  neither is there.
HiddenSource open_hidden(const TrainConfig& config, const TrainInputs& inputs);

}  // namespace medusa
