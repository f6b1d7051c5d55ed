#include "data/dataset/sample_order.h"

#include <utility>

#include "base/check.h"

namespace medusa {
namespace {

constexpr int64_t kSplitPosition = -1;  // epochs count from 0, so no shuffle uses these numbers

/// A number in [0, bound) from 64 random bits; the bias is below bound / 2^64.
uint64_t scale(uint64_t bits, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{bits} * bound) >> 64);
}

}  // namespace

bool in_validation(const Random& random, int64_t sample, double fraction) {
  return random.uniform(RandomUse::Shuffle, kSplitPosition, static_cast<uint64_t>(sample)) <
         fraction;
}

SampleSplit split_samples(const Random& random, int64_t num_samples, double fraction) {
  SampleSplit split;
  for (int64_t i = 0; i < num_samples; ++i)
    (in_validation(random, i, fraction) ? split.validation : split.train).push_back(i);
  return split;
}

SampleOrder::SampleOrder(std::vector<int64_t> samples, const Random& random)
    : samples_(std::move(samples)), random_(random) {
  MEDUSA_ASSERT(!samples_.empty());
  shuffle();
}

void SampleOrder::shuffle() {
  shuffled_ = samples_;
  for (size_t i = shuffled_.size() - 1; i > 0; --i) {  // Fisher-Yates
    const uint64_t bits = random_.bits(RandomUse::Shuffle, state_.epoch, i);
    std::swap(shuffled_[i], shuffled_[scale(bits, i + 1)]);
  }
}

int64_t SampleOrder::next() {
  if (state_.position == epoch_size()) {
    ++state_.epoch;
    state_.position = 0;
    shuffle();
  }
  return shuffled_[static_cast<size_t>(state_.position++)];
}

void SampleOrder::continue_from(const State& state) {
  MEDUSA_ASSERT(state.epoch >= 0 && state.position >= 0 && state.position <= epoch_size(),
                state.epoch, state.position, epoch_size());
  state_ = state;
  shuffle();
}

}  // namespace medusa
