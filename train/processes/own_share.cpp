#include "train/processes/own_share.h"

#include <algorithm>

#include "train/samples/position_pool.h"

namespace medusa {

std::vector<int64_t> OwnShare::own_of(std::span<const int64_t> pool_positions) const {
  std::vector<int64_t> own;
  for (const int64_t position : pool_positions)
    if (const int64_t at = positions[static_cast<size_t>(position)]; at >= 0) own.push_back(at);
  return own;
}

OwnShare own_share(const DatasetReader& dataset, std::span<const int64_t> samples, int64_t rank,
                   int64_t count) {
  OwnShare share;
  std::vector<int64_t> load(static_cast<size_t>(count));  // positions of each process
  for (const int64_t sample : samples) {
    const auto least = std::min_element(load.begin(), load.end());
    const int64_t n = std::max<int64_t>(num_positions(dataset, sample), 0);
    const bool own = least - load.begin() == rank;
    for (int64_t i = 0; i < n; ++i) share.positions.push_back(own ? *least + i : -1);
    *least += n;
    if (own) share.samples.push_back(sample);
  }
  return share;
}

}  // namespace medusa
