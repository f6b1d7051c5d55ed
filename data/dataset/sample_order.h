// Which sample comes next: a seeded shuffle per epoch, the split into training and validation, and
// how the samples of several datasets make one run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/dataset/dataset_reader.h"

namespace medusa {

/// True when a sample is kept for validation. Depends on nothing but the seed, the sample's index
/// and the fraction: a dataset that grows keeps its split, and a larger fraction keeps all that a
/// smaller one chose.
/// @param fraction  share of samples for validation, 0 to 1.
bool in_validation(const Random& random, int64_t sample, double fraction);

/// The samples 0 ... num_samples - 1 split in two, each part ascending. Either may be empty when
/// there are few samples.
struct SampleSplit {
  std::vector<int64_t> train;
  std::vector<int64_t> validation;
};
SampleSplit split_samples(const Random& random, int64_t num_samples, double fraction);

/// Goes through the samples again and again, each epoch in another order. The order of an epoch is
/// a function of (seed, epoch), so the state is two numbers.
///
/// Thread safety: none.
class SampleOrder {
 public:
  struct State {
    int64_t epoch = 0;
    int64_t position = 0;  // samples of this epoch that next() has given
    bool operator==(const State&) const = default;
  };

  /// @param samples  at least one.
  SampleOrder(std::vector<int64_t> samples, const Random& random);

  /// The next sample; after the last of an epoch the next epoch begins.
  int64_t next();

  /// What next() would give after so many calls; continue_from(state()) changes nothing.
  const State& state() const { return state_; }

  /// Goes on as the order did that had this state.
  void continue_from(const State& state);

  int64_t epoch_size() const { return static_cast<int64_t>(samples_.size()); }

 private:
  void shuffle();

  std::vector<int64_t> samples_;   // as given
  std::vector<int64_t> shuffled_;  // of this epoch
  Random random_;
  State state_;
};

/// Each dataset split by itself, as split_samples() does: a dataset's validation samples are the
/// same ones whatever it is mixed with. The training part ascends; the validation part takes from
/// the datasets in turns, each in proportion to its size, so that its beginning stands for all.
SampleSplit split_dataset(const Random& random, const DatasetReader& dataset, double fraction);

/// The samples that an epoch visits, in the order of the visit. A weight w means w visits an epoch:
/// after any number e of epochs each sample was visited e w times, rounded up or down. With a
/// weight of 1 everywhere this is the order of SampleOrder.
///
/// A function of its arguments alone, so that the state of a run stays its step.
/// @param samples  of the training part; the result is empty if none of them has its turn.
std::vector<int64_t> samples_of_epoch(const Random& random, const DatasetReader& dataset,
                                      const std::vector<int64_t>& samples, int64_t epoch);

/// For manifests, one line each: "sha256:4f0c… weight 2, runs/more/dataset". Empty for one dataset
/// alone, which fingerprint() names.
std::vector<std::string> mixed_datasets(const DatasetReader& dataset);

}  // namespace medusa
