// Fits the choice tree: which of the heads' drafts are right, and what a step with them costs on
// this machine.
// Paper: Medusa (arXiv:2401.10774) §2.3.3, with the step's time in place of a size given.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/dataset/dataset_reader.h"
#include "heads/tree/choice_tree.h"
#include "infer/infer_config.h"
#include "runtime/calibrate_config.h"
#include "runtime/model.h"

namespace medusa {

/// Messages call these by the names of the settings: calibrate.repeats is `config.repeats`.
struct CalibratorOptions {
  CalibrateConfig config{};
  std::filesystem::path heads{};      // folder of trained heads
  double validation_fraction = 0.05;  // as in training, so that no sample was trained on
  uint64_t seed = 1;                  // as in training
  InferConfig infer{};                // rule and loop that decoding will use
};

/// Thread safety: yes. Calls of generators and calibrators of one model take turns.
class Calibrator {
 public:
  /// @param model  of which a copy is kept; its progress function is told how far it is, and must
  ///               not call the model's generators.
  /// @throws UserError  no model is loaded, no heads are named, or an option is outside its range.
  Calibrator(const Model& model, CalibratorOptions options);

  /// Minutes at most: drafts at every root of the validation answers, then timed steps. Writes
  /// nothing; write_choice_tree() does.
  /// @param dataset  that the model wrote.
  /// @throws UserError    another model wrote the dataset; heads that are missing, damaged or of
  ///                      another model; options by which samples that the heads were trained on
  ///                      would count; no validation answer that is long enough.
  /// @throws Interrupted  base/interrupt.h.
  ChoiceTree run(const DatasetReader& dataset) const;

 private:
  Model model_;
  CalibratorOptions options_;
};

}  // namespace medusa
