// Samples -> tensors: states, roots, and the labels of every head.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset_reader.h"
#include "data/sample_order.h"
#include "heads/medusa_heads.h"
#include "train/hidden_source.h"

namespace medusa {

constexpr int32_t kNoLabel = -1;       // the text ends before: neither loss nor accuracy
constexpr int32_t kLabelNotKept = -2;  // the output cannot guess it: no loss, and a miss

/// Positions of some samples, one after the other. Position i of an answer has root answer[i], the
/// state before it, and head k's label is answer[i + 1 + k].
struct Batch {
  at::Tensor hidden;            // [n, H] compute dtype
  at::Tensor embeddings;        // [n, H] of the roots, compute dtype
  std::vector<int32_t> labels;  // [K, n] output row, or one of the two above
  int64_t num_heads = 0;

  int64_t size() const { return hidden.size(0); }  // n
  std::span<const int32_t> labels_of(int64_t head) const {
    const auto n = static_cast<size_t>(size());
    return {labels.data() + static_cast<size_t>(head) * n, n};
  }
};

/// Positions of a sample that have a label for at least one head.
int64_t num_positions(const DatasetReader& dataset, int64_t sample);

/// @param samples    with at least one position each.
/// @param label_row  as rows_of_tokens gives it.
Batch make_batch(const DatasetReader& dataset, std::span<const int64_t> samples,
                 const HiddenSource& hidden, const Weights& backbone, int64_t num_heads,
                 std::span<const int32_t> label_row);

/// Groups samples into batches of about batch_positions positions, each sample whole; samples
/// without a position are left out.
std::vector<std::vector<int64_t>> plan_batches(const DatasetReader& dataset,
                                               std::span<const int64_t> samples,
                                               int64_t batch_positions);

}  // namespace medusa
