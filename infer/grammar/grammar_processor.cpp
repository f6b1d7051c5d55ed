#include "infer/grammar/grammar_processor.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace medusa {
namespace {

constexpr size_t kWordBits = 32;

/// Sets the logits of all tokens that the mask leaves out to -infinity, whole words at a time where
/// it lets everything or nothing come.
void apply_mask(std::span<const int32_t> mask, std::span<float> row) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (size_t word = 0; word < mask.size(); ++word) {
    const auto bits = static_cast<uint32_t>(mask[word]);
    if (bits == ~uint32_t{0}) continue;
    const size_t first = word * kWordBits, end = std::min(first + kWordBits, row.size());
    for (size_t i = first; i < end; ++i)
      if ((bits >> (i - first) & 1U) == 0) row[i] = kNever;
  }
}

}  // namespace

GrammarProcessor::GrammarProcessor(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)),
      matcher_(grammar_->make_matcher()),
      mask_((static_cast<size_t>(grammar_->vocab_size()) + kWordBits - 1) / kWordBits) {}

/// Moves the matcher from the path that it is on, back to where both part and on to the new one.
void GrammarProcessor::go_to(std::span<const TokenId> path) {
  const auto part = std::mismatch(path_.begin(), path_.end(), path.begin(), path.end());
  const auto back = static_cast<int32_t>(path_.end() - part.first);
  if (back > 0) matcher_->rollback(back);
  path_.erase(part.first, path_.end());
  for (const TokenId token : path.subspan(path_.size())) {
    if (matcher_->has_ended()) return;  // a rule may read on behind an end; the text does not
    MEDUSA_ASSERT(matcher_->accept(token), token);  // its parent's row let it come
    path_.push_back(token);
  }
}

void GrammarProcessor::take(TokenId token) {
  go_to({});
  MEDUSA_ASSERT(matcher_->accept(token), token);
}

void GrammarProcessor::process(std::span<const TokenId> path, std::span<float> row) {
  go_to(path);
  if (matcher_->has_ended()) return;
  const size_t vocab_size = static_cast<size_t>(grammar_->vocab_size());
  MEDUSA_ASSERT(vocab_size <= row.size(), vocab_size, row.size());
  matcher_->fill_mask(mask_);
  apply_mask(mask_, row.first(vocab_size));
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(vocab_size), row.end(),
            -std::numeric_limits<float>::infinity());  // padding of the LM head
}

}  // namespace medusa
