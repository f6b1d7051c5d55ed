// Which part of every batch one of several processes computes: the positions that lie in its own
// samples. It then reads, keeps and labels these samples alone, and a batch has the same positions
// whatever the number of processes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/dataset_reader.h"

namespace medusa {

/// One process's part of a pool.
struct OwnShare {
  std::vector<int64_t> samples;    // of the pool's, in their order
  std::vector<int64_t> positions;  // [pool] where each position is among those of the own samples;
                                   // -1: it is another process's

  /// Those of some of the pool's positions that are its own.
  std::vector<int64_t> own_of(std::span<const int64_t> pool_positions) const;
};

/// Deals the samples out, each to the process that has the fewest positions so far. A batch drawn
/// from the pool then gives each process about as many, within the chance of the draw.
/// @param samples  the pool's.
OwnShare own_share(const DatasetReader& dataset, std::span<const int64_t> samples, int64_t rank,
                   int64_t count);

}  // namespace medusa
