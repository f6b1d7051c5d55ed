#include "data/dataset/sample_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

constexpr int64_t kTurnPosition = -2;  // epochs count from 0, and -1 is the split's

/// A sample and how far through its dataset's own list it lies, 0 to 1.
using Placed = std::pair<double, int64_t>;

/// Visits in the first `epochs` epochs. Each sample has a start of its own, so that a weight of 0.5
/// visits half of a dataset in one epoch and the other half in the next.
int64_t visits_before(int64_t epochs, double weight, double start) {
  return static_cast<int64_t>(std::floor(weight * static_cast<double>(epochs) + start));
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

SampleSplit split_dataset(const Random& random, const DatasetReader& dataset, double fraction) {
  SampleSplit out;
  std::vector<Placed> validation;
  for (const DatasetSource& source : dataset.sources()) {
    const SampleSplit own = split_samples(random, source.count, fraction);
    for (const int64_t sample : own.train) out.train.push_back(source.first + sample);
    const auto size = static_cast<double>(own.validation.size());
    for (size_t i = 0; i < own.validation.size(); ++i)
      validation.emplace_back((static_cast<double>(i) + 0.5) / size,
                              source.first + own.validation[i]);
  }
  std::sort(validation.begin(), validation.end());
  for (const auto& [place, sample] : validation) out.validation.push_back(sample);
  return out;
}

std::vector<int64_t> samples_of_epoch(const Random& random, const DatasetReader& dataset,
                                      const std::vector<int64_t>& samples, int64_t epoch) {
  std::vector<int64_t> visits;
  for (const int64_t sample : samples) {
    const double weight = dataset.source_of(sample).weight;
    const double start =
        random.uniform(RandomUse::Shuffle, kTurnPosition, static_cast<uint64_t>(sample));
    const int64_t count =
        visits_before(epoch + 1, weight, start) - visits_before(epoch, weight, start);
    visits.insert(visits.end(), static_cast<size_t>(count), sample);
  }
  if (visits.empty()) return visits;
  SampleOrder order(visits, random);
  order.continue_from({epoch, 0});
  for (int64_t& visit : visits) visit = order.next();
  return visits;
}

std::vector<std::string> mixed_datasets(const DatasetReader& dataset) {
  std::vector<std::string> out;
  if (dataset.sources().size() == 1) return out;
  for (const DatasetSource& source : dataset.sources())
    out.push_back(
        fmt::format("{} weight {}, {}", source.fingerprint, source.weight, source.folder.string()));
  return out;
}

}  // namespace medusa
