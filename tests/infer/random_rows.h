// Rows of logits for tests of passes over them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace medusa::fixtures {

/// Around a vector, a block and a chunk, and a model's vocabulary.
inline const std::vector<size_t> kRowSizes{1,  2,  15,   16,   17,   31,   33,   63,
                                           64, 65, 1000, 2047, 2048, 2049, 4100, 49152};

/// Logits of width / 2 on both sides of 0.
inline std::vector<float> random_row(size_t size, uint64_t seed, double width) {
  std::vector<float> row;
  row.reserve(size);
  for (size_t i = 0; i < size; ++i)
    row.push_back(static_cast<float>(width * (Random(seed).uniform(RandomUse::Init, 0, i) - 0.5)));
  return row;
}

}  // namespace medusa::fixtures
