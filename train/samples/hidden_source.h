// Where the backbone's states come from: recorded in the dataset, or computed again; and a thread
// that reads recorded ones before training asks for them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

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

/// A source of recorded states that a thread of its own reads in the order in which they will be
/// asked for. The same values as offline_hidden().
/// @param dataset    must outlive the source.
/// @param order      samples that have recorded states; they are asked for in this order.
/// @param otherwise  gives the states of samples that have none.
/// @param most_rows  so many at most wait to be asked for, but always one sample.
HiddenSource read_ahead(const DatasetReader& dataset, std::vector<int64_t> order,
                        HiddenSource otherwise, int64_t most_rows);

}  // namespace medusa
