// A draft model over the toy target: its predictions are the target's, shaken a little.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "base/check.h"
#include "infer/draft_models/draft_model.h"
#include "tests/infer/toy_model.h"

namespace medusa::fixtures {

/// Checks that a step's nodes come in order and that it ends before the next one begins.
class ToyDraft : public DraftModel {
 public:
  /// @param shake  largest difference of a logit; 0: the target itself.
  explicit ToyDraft(float shake, int64_t max_rows = 1000) : shake_(shake), max_rows_(max_rows) {}

  std::unique_ptr<DraftSequence> open() override { return std::make_unique<Sequence>(*this); }

  std::vector<float> logits(std::span<const TokenId> context) const {
    std::vector<float> out = toy_logits(context);
    const auto state = static_cast<int64_t>(context.size());
    for (size_t v = 0; v < out.size(); ++v) {
      const double u = Random(77).uniform(RandomUse::Init, state, v);
      out[v] += shake_ * static_cast<float>(2 * u - 1);
    }
    return out;
  }

 private:
  class Sequence : public DraftSequence {
   public:
    explicit Sequence(const ToyDraft& draft) : draft_(draft) {}
    int64_t max_rows() const override { return draft_.max_rows_; }
    void begin(std::span<const TokenId> /*prompt*/) override {}

    at::Tensor extend(const DraftContext& context, const CandidateTree& tree,
                      int32_t first) override {
      MEDUSA_ASSERT(first == ran_ && tree.size() > first, first, ran_);
      MEDUSA_ASSERT(static_cast<int64_t>(context.tokens.size()) - 1 + tree.size() <=
                    draft_.max_rows_);
      std::vector<at::Tensor> rows;
      for (int32_t node = first; node < tree.size(); ++node) {
        std::vector<TokenId> path;
        for (int32_t at = node; at > 0; at = tree.parents[static_cast<size_t>(at)])
          path.insert(path.begin(), tree.tokens[static_cast<size_t>(at)]);
        std::vector<TokenId> text(context.tokens.begin(), context.tokens.end());
        text.insert(text.end(), path.begin(), path.end());
        rows.push_back(at::tensor(draft_.logits(text)));
      }
      ran_ = tree.size();
      return at::stack(rows);
    }

    void keep(std::span<const int32_t> /*path*/) override { ran_ = 0; }

   private:
    const ToyDraft& draft_;
    int32_t ran_ = 0;
  };

  float shake_;
  int64_t max_rows_;
};

}  // namespace medusa::fixtures
