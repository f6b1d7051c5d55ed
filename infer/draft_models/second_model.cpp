#include "infer/draft_models/second_model.h"

#include <ATen/ATen.h>

#include <limits>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kMaxPending = 16;  // tokens that may join the root's pass; more run before it

/// The logits with as many columns as the target's have; new ones are impossible.
at::Tensor with_columns(const at::Tensor& logits, int64_t count) {
  const int64_t missing = count - logits.size(1);
  if (missing <= 0) return logits.narrow(1, 0, count);
  return at::constant_pad_nd(logits, {0, missing}, -std::numeric_limits<float>::infinity());
}

}  // namespace

class SecondModel::Sequence : public DraftSequence {
 public:
  explicit Sequence(SecondModel& model) : model_(model), slot_(model.cache_.open()) {}
  ~Sequence() override { model_.cache_.close(slot_); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  int64_t max_rows() const override { return model_.max_rows_; }

  void begin(std::span<const TokenId> prompt) override {
    if (static_cast<int64_t>(prompt.size()) <= max_rows()) prefill(prompt.first(prompt.size() - 1));
  }

  at::Tensor extend(const DraftContext& context, const CandidateTree& tree,
                    int32_t first) override {
    if (first == 0) begin_step(context.tokens.first(context.tokens.size() - 1));
    append_nodes(tree, first);
    const int32_t from = first == 0 ? 0 : pending_ + first;
    const Segment segment{slot_, tokens_, parents_, from};
    at::Tensor hidden = model_.llama_.forward({&segment, 1}, model_.cache_);
    const int64_t wanted = tree.size() - first;
    hidden = hidden.narrow(0, hidden.size(0) - wanted, wanted);
    return with_columns(model_.llama_.logits(hidden).cpu(), model_.vocab_size_);
  }

  void keep(std::span<const int32_t> path) override {
    const auto ran = static_cast<int32_t>(tokens_.size());
    std::vector<int32_t> rows;
    for (int32_t i = 0; i <= pending_ && i < ran; ++i) rows.push_back(i);  // and the root
    for (const int32_t node : path)
      if (pending_ + node < ran) rows.push_back(pending_ + node);
    model_.cache_.commit(slot_, rows);
    tokens_.clear();
    parents_.clear();
    pending_ = 0;
  }

 private:
  void prefill(std::span<const TokenId> tokens) {
    if (!tokens.empty()) model_.llama_.prefill(slot_, tokens, model_.cache_);
  }

  /// @param text  all tokens before the root.
  void begin_step(std::span<const TokenId> text) {
    const auto kept = static_cast<size_t>(model_.cache_.length(slot_));
    MEDUSA_ASSERT(kept <= text.size() && tokens_.empty(), kept, text.size(), tokens_.size());
    std::span<const TokenId> missing = text.subspan(kept);
    if (static_cast<int64_t>(missing.size()) > kMaxPending) {
      prefill(missing);
      missing = {};
    }
    pending_ = static_cast<int32_t>(missing.size());
    tokens_.assign(missing.begin(), missing.end());
    for (int32_t i = 0; i < pending_; ++i) parents_.push_back(i - 1);
  }

  /// The tree hangs below the tokens that were missing.
  void append_nodes(const CandidateTree& tree, int32_t first) {
    for (auto i = static_cast<size_t>(first); i < tree.tokens.size(); ++i) {
      tokens_.push_back(tree.tokens[i]);
      parents_.push_back(pending_ + tree.parents[i]);
    }
  }

  SecondModel& model_;
  const int32_t slot_;
  // The step that runs: tokens that were missing, then the tree's nodes.
  int32_t pending_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<int32_t> parents_;
};

std::unique_ptr<DraftSequence> SecondModel::open() { return std::make_unique<Sequence>(*this); }

}  // namespace medusa
