#include "data/dataset/dataset_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace medusa {
namespace {

constexpr int64_t kTurnPosition = -2;  // epochs count from 0, and -1 is the split's

/// A sample and how far through its dataset's own list it lies, 0 to 1.
using Placed = std::pair<double, int64_t>;

/// Visits in the first `epochs` epochs. Each sample has a start of its own, so that a weight of 0.5
/// visits half of a dataset in one epoch and the other half in the next.
int64_t visits_before(int64_t epochs, double weight, double start) {
  return static_cast<int64_t>(std::floor(weight * static_cast<double>(epochs) + start));
}

}  // namespace

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
