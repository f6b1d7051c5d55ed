// Settings of a draft model that is cut from the backbone and trained on the dataset.
#pragma once

#include <cstdint>

#include "base/fields.h"
#include "train/optimizer_config.h"

namespace medusa {

struct DraftTrainConfig {
  int64_t layers = 2;
  OptimizerConfig optimizer;
  int64_t batch_tokens = 512;
  int64_t soft_top = 32;
  int64_t chunk_positions = 256;
  double validation_fraction = 0.05;
  int64_t validation_samples = 40;
  ReportConfig reports;

  template <typename Fields>
  void fields(Fields& f) {
    f("layers", layers, "layers of the draft model: the backbone's first and last ones",
      at_least<int64_t>(1));
    optimizer.fields(f);
    f("batch_tokens", batch_tokens, "tokens of whole samples that make one step, about",
      at_least<int64_t>(1));
    f("soft_top", soft_top, "most probable tokens of the backbone that make a label",
      between<int64_t>(1, 64));
    f("chunk_positions", chunk_positions, "positions whose logits are in memory at one time",
      at_least<int64_t>(1));
    f("validation_fraction", validation_fraction, "share of samples kept out of training",
      between(0.0, 0.5));
    f("validation_samples", validation_samples, "most samples that judge the draft model",
      at_least<int64_t>(1))
        .cosmetic();
    reports.fields(f);
  }
  void validate() const {}
};

}  // namespace medusa
