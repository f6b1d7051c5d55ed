#include "infer/grammar/grammar_processor.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "base/simd.h"

namespace medusa {
namespace {

constexpr size_t kWordBits = 32;

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// Sets the logits of the tokens that whole words of a mask leave out to -infinity.
/// @param row  [32 * num_words]
MEDUSA_WIDE void mask_words(const int32_t* words, size_t num_words, float* row) {
  constexpr I32x16 kBits = {1,      2,      4,       8,       16,      32,      64,      128,
                            1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  F32x16 never;
  fill(kNever, never);
  for (size_t word = 0; word < num_words; ++word, row += 2 * kLanes) {
    if (words[word] == -1) continue;  // all may come
    for (int64_t half = 0; half < 2; ++half) {
      const auto bits = static_cast<int32_t>(static_cast<uint32_t>(words[word]) >> (kLanes * half));
      F32x16 logits;
      load(row + kLanes * half, logits);
      store(((I32x16{} + bits) & kBits) != 0 ? logits : never, row + kLanes * half);
    }
  }
}

/// The same of a row of any size; the mask has a bit for each of its elements.
void apply_mask(std::span<const int32_t> mask, std::span<float> row) {
  const size_t num_whole = row.size() / kWordBits;
  mask_words(mask.data(), num_whole, row.data());
  for (size_t i = num_whole * kWordBits; i < row.size(); ++i)
    if ((static_cast<uint32_t>(mask[num_whole]) >> (i % kWordBits) & 1U) == 0) row[i] = kNever;
}

}  // namespace

GrammarProcessor::GrammarProcessor(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)),
      path_(grammar_->make_matcher()),
      mask_((static_cast<size_t>(grammar_->vocab_size()) + kWordBits - 1) / kWordBits) {}

void GrammarProcessor::take(TokenId token) { MEDUSA_ASSERT(path_.take(token), token); }

void GrammarProcessor::process(std::span<const TokenId> path, std::span<float> row) {
  path_.go_to(path);
  GrammarMatcher& matcher = path_.matcher();
  if (matcher.has_ended()) return;  // a rule may read on behind an end; the text does not
  const size_t vocab_size = static_cast<size_t>(grammar_->vocab_size());
  MEDUSA_ASSERT(vocab_size <= row.size(), vocab_size, row.size());
  matcher.fill_mask(mask_);
  if (std::all_of(mask_.begin(), mask_.end(), [](int32_t word) { return word == 0; }))
    throw UserError(
        "the grammar has no token that could follow the answer so far, expected one, or an end; "
        "look for a rule that leads nowhere");
  apply_mask(mask_, row.first(vocab_size));
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(vocab_size), row.end(),
            kNever);  // padding of the LM head
}

}  // namespace medusa
