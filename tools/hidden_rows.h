// The backbone's states of a dataset's answers: read from the dataset, or computed where it has
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backbone/llama.h"
#include "data/dataset_reader.h"

namespace medusa {

class HiddenRows {
 public:
  /// Both are kept by reference.
  HiddenRows(const DatasetReader& dataset, Llama& llama);

  /// [answer tokens, H] in the backbone's dtype and on its device: row i is the state at the token
  /// before the answer's token i. Valid until the next call.
  at::Tensor of(int64_t sample);

 private:
  at::Tensor stored(int64_t sample);
  at::Tensor computed(int64_t sample);

  const DatasetReader& dataset_;
  Llama& llama_;
  std::optional<KvCache> cache_;  // for computed states
  std::vector<uint16_t> bits_;
};

}  // namespace medusa
