#include "train/samples/batch.h"

namespace medusa {

Labels Labels::part(int64_t first, int64_t count) const {
  const auto from = static_cast<size_t>(first), n = static_cast<size_t>(count);
  const auto m = static_cast<size_t>(soft_size());
  return {hard.subspan(from, n), soft_rows.subspan(from * m, n * m),
          soft_probs.subspan(from * m, n * m), objective};
}

int64_t Labels::num_with_loss() const {
  int64_t count = 0;
  for (size_t i = 0; i < hard.size(); ++i) count += has_loss(i) ? 1 : 0;
  return count;
}

Labels Batch::labels_of(int64_t head) const {
  const Labels all{labels, soft_rows, soft_probs, objective};
  return all.part(head * size(), size());
}

}  // namespace medusa
