#include "train/batch.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"
#include "heads/medusa_heads.h"

namespace medusa {

int64_t num_positions(const DatasetReader& dataset, int64_t sample) {
  return static_cast<int64_t>(dataset.answer(sample).size()) -
         1;  // the last token has no successor
}

Batch make_batch(const DatasetReader& dataset, std::span<const int64_t> samples,
                 const HiddenSource& hidden, const Weights& backbone, int64_t num_heads,
                 std::span<const int32_t> label_row) {
  std::vector<at::Tensor> states;
  std::vector<TokenId> roots;
  std::vector<std::vector<int32_t>> labels(static_cast<size_t>(num_heads));
  for (const int64_t sample : samples) {
    const auto answer = dataset.answer(sample);
    const int64_t n = num_positions(dataset, sample);
    MEDUSA_ASSERT(n > 0, sample);
    states.push_back(hidden(sample).narrow(0, 0, n));
    roots.insert(roots.end(), answer.begin(), answer.end() - 1);
    for (int64_t head = 0; head < num_heads; ++head)
      for (int64_t i = 0; i < n; ++i) {
        const auto place = static_cast<size_t>(i + 1 + head);
        int32_t label = kNoLabel;
        if (place < answer.size()) {
          const int32_t row = label_row[static_cast<size_t>(answer[place])];
          label = row < 0 ? kLabelNotKept : row;
        }
        labels[static_cast<size_t>(head)].push_back(label);
      }
  }
  Batch batch;
  batch.num_heads = num_heads;
  batch.hidden = at::cat(states).to(backbone.embedding.device(), backbone.embedding.scalar_type());
  batch.embeddings = root_embeddings(backbone, embedding_gain(backbone),
                                     at::tensor(roots, at::kInt).to(backbone.embedding.device()));
  for (const auto& of_head : labels)
    batch.labels.insert(batch.labels.end(), of_head.begin(), of_head.end());
  return batch;
}

std::vector<std::vector<int64_t>> plan_batches(const DatasetReader& dataset,
                                               std::span<const int64_t> samples,
                                               int64_t batch_positions) {
  std::vector<std::vector<int64_t>> batches;
  int64_t room = 0;  // positions the last batch may still take
  for (const int64_t sample : samples) {
    const int64_t n = num_positions(dataset, sample);
    if (n <= 0) continue;
    if (room <= 0) {
      batches.emplace_back();
      room = batch_positions;
    }
    batches.back().push_back(sample);
    room -= n;
  }
  return batches;
}

}  // namespace medusa
