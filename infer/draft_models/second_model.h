// A second, smaller Llama that drafts for the target.
#pragma once

#include <memory>
#include <vector>

#include "backbone/llama.h"
#include "infer/draft_models/draft_model.h"

namespace medusa {

/// DraftModel over a Llama and a cache of its own. It must outlive its sequences.
///
/// A sequence's cache holds a beginning of the text; what is missing (after a fully accepted chain
/// the last drafted token, which was never run) joins the next root's pass.
class SecondModel : public DraftModel {
 public:
  /// @param llama     kept by reference; must outlive this.
  /// @param max_rows    of one sequence; at most the model's context.
  /// @param vocab_size  V of the target. Models of one family fill their tables up to different
  ///                    sizes; rows that one of them lacks are never proposed.
  SecondModel(Llama& llama, int32_t num_slots, int64_t max_rows, int64_t vocab_size)
      : llama_(llama),
        cache_(llama.make_cache(num_slots, max_rows)),
        max_rows_(max_rows),
        vocab_size_(vocab_size) {}

  std::unique_ptr<DraftSequence> open() override;

 private:
  class Sequence;

  Llama& llama_;
  KvCache cache_;
  int64_t max_rows_;
  int64_t vocab_size_;
};

}  // namespace medusa
