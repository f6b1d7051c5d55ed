// Tells a training step that went wrong from one that did not, and says which numbers went first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backbone/weights.h"
#include "train/adamw.h"

namespace medusa {

/// Adds what there is of a layer: "layers.3.qkv" and so on.
void add_named_layer(const LayerWeights& layer, int64_t index, NamedTensors& out);

/// All tensors of a model: "embedding", "layers.3.qkv", "final_norm", "lm_head".
NamedTensors named_weights(const Weights& weights);

/// The first tensor that holds a number that is none, or an infinite one.
std::optional<std::string> first_not_finite(const NamedTensors& tensors);

/// What a step was made of.
struct StepPlace {
  int64_t step = 0;              // from 0
  std::vector<int64_t> samples;  // of the dataset, that its batches came from
  std::string rate_key;          // the setting to lower
  std::string checkpoint;        // what is kept; empty: there is none yet
};

/// @param loss      of the step, before the update.
/// @param tensors   to search for the culprit, those that were there first in front.
/// @throws UserError  loss or gradient_norm is not finite.
void check_finite(double loss, double gradient_norm, const StepPlace& place,
                  const NamedTensors& tensors);

}  // namespace medusa
