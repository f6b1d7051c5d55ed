// Settings of a draft model that is cut from the backbone and trained on the dataset.
#pragma once

#include <cstdint>

#include "base/fields.h"

namespace medusa {

struct DraftTrainConfig {
  int64_t layers = 2;
  int64_t epochs = 1;
  int64_t batch_tokens = 512;
  double learning_rate = 1e-3;  // peak
  int64_t warmup_steps = 10;
  double weight_decay = 0;
  double clip_norm = 1;
  int64_t soft_top = 32;
  int64_t chunk_positions = 256;
  double validation_fraction = 0.05;
  int64_t validation_samples = 40;

  template <typename Fields>
  void fields(Fields& f) {
    f("layers", layers, "layers of the draft model: the backbone's first and last ones",
      at_least<int64_t>(1));
    f("epochs", epochs, "passes over the training samples", at_least<int64_t>(1));
    f("batch_tokens", batch_tokens, "tokens of whole samples that make one step, about",
      at_least<int64_t>(1));
    f("learning_rate", learning_rate, "AdamW peak step size", greater_than(0.0));
    f("warmup_steps", warmup_steps, "optimiser steps of linear warm-up", at_least<int64_t>(0));
    f("weight_decay", weight_decay, "AdamW weight decay", at_least(0.0));
    f("clip_norm", clip_norm, "largest norm of the whole gradient", greater_than(0.0));
    f("soft_top", soft_top, "most probable tokens of the backbone that make a label",
      between<int64_t>(1, 64));
    f("chunk_positions", chunk_positions, "positions whose logits are in memory at one time",
      at_least<int64_t>(1));
    f("validation_fraction", validation_fraction, "share of samples kept out of training",
      between(0.0, 0.5));
    f("validation_samples", validation_samples, "most samples that judge the draft model",
      at_least<int64_t>(1));
  }
  void validate() const {}
};

}  // namespace medusa
