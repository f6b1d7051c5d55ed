// How the samples of one dataset or several make a training run: which judge, and which an epoch
// visits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/sample_order.h"

namespace medusa {

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
