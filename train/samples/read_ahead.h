// Recorded states read from the disk before training asks for them.
#pragma once

#include <cstdint>
#include <vector>

#include "train/samples/hidden_source.h"

namespace medusa {

/// A source of recorded states that a thread of its own reads in the order in which they will be
/// asked for. The same values as offline_hidden().
/// @param dataset    must outlive the source.
/// @param order      samples that have recorded states; they are asked for in this order.
/// @param otherwise  gives the states of samples that have none.
/// @param most_rows  so many at most wait to be asked for, but always one sample.
HiddenSource read_ahead(const DatasetReader& dataset, std::vector<int64_t> order,
                        HiddenSource otherwise, int64_t most_rows);

}  // namespace medusa
