// Trains Medusa heads: a model and a dataset that it wrote -> a folder of heads.
// Paper: Medusa (arXiv:2401.10774) §2.2.1.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset/dataset_reader.h"
#include "heads/heads_config.h"
#include "runtime/model_options.h"
#include "runtime/turns_of_callers.h"
#include "train/resource_estimate.h"
#include "train/trainer.h"

namespace medusa {

/// Messages call these by the names of the settings: train.epochs is `training.optimizer.epochs`.
struct HeadsTrainerOptions {
  std::filesystem::path model{};  // a .gguf file, or a folder with config.json and .safetensors
  ModelOptions loading{};         // where and in which dtype it is loaded; progress and notes
  HeadsConfig shape{};            // what the heads look like
  TrainConfig training{};
  std::filesystem::path begin_with{};  // folder of heads to begin with; empty: untrained ones
  std::filesystem::path heads{};  // folder of the result; earlier heads of this training that are
                                  // there are replaced then
  std::string replaceable{};      // other heads there that may be replaced, too, by what
                                  // identity_of_heads_at() says (train/record/heads_place.h)
  std::filesystem::path work{};   // checkpoint and metrics; a run found here is continued
  RemoveProgress begin_anew{};    // else removed by this (train/train_loop.h); empty: continued
  std::string settings{};         // kept with the heads, for people; empty: these options as YAML
  Reported reported{};            // told each report, when it is on the disk
  ProcessGroup* group = nullptr;  // processes that train with this one; null: it is alone
};

/// The weights are loaded for each call and let go of: without their layers where the dataset holds
/// the states. What LibTorch computes, which is most of training, takes the process's
/// at::set_num_threads().
///
/// Thread safety: yes; calls of one trainer take turns. No two trainers may have a folder in common
/// at the same time.
class HeadsTrainer {
 public:
  /// @throws UserError  model or folders are not named; an option is outside its range; the result
  ///                    would replace the heads to begin with.
  explicit HeadsTrainer(HeadsTrainerOptions options);

  /// What run() would take, without doing it: bytes, steps, and one step tried.
  /// @throws UserError  as run(), for what shows before the first step.
  ResourceEstimate estimate_resources(const DatasetReader& dataset) const;

  /// Trains to the end, or until a signal that base/interrupt.h was told to look for. Run again, it
  /// continues from its last checkpoint, also when a function of the options threw.
  /// @param dataset  that the model wrote.
  /// @throws UserError  another model wrote the dataset; a checkpoint of other settings; heads to
  ///                    begin with of another model or other settings; what must not be replaced
  ///                    stands where the heads go (base/replace_folder.h, heads of another
  ///                    training); as train_heads().
  TrainResult run(const DatasetReader& dataset) const;

 private:
  HeadsTrainerOptions options_;
  std::unique_ptr<TurnsOfCallers> turns_ = std::make_unique<TurnsOfCallers>();
};

}  // namespace medusa
