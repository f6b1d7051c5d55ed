// Where the backbone's states come from: recorded in the dataset, or computed again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "backbone/llama.h"
#include "data/dataset/dataset_reader.h"

namespace medusa {

/// Sample -> [answer length, H] bfloat16 on the CPU; row i is the state at token answer_start - 1 +
/// i, from which head k drafts token answer_start + i + 1 + k.
using HiddenSource = std::function<at::Tensor(int64_t sample)>;

/// The states as decoding recorded them, of samples that have some.
HiddenSource offline_hidden(const DatasetReader& dataset);

/// The states of a pass over the sample's tokens, in chunks. They are rounded to bfloat16 in every
/// dtype, as recorded ones are, so that both sources give the same losses.
/// @param llama  must outlive the source.
HiddenSource online_hidden(const DatasetReader& dataset, Llama& llama);

/// Recorded states where a sample has some, else those of a pass.
/// @param llama  must outlive the source; null: all samples have them.
HiddenSource recorded_hidden(const DatasetReader& dataset, Llama* llama);

}  // namespace medusa
