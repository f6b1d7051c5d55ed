// Words change lanes. A lane loads 16 consecutive bytes, the best that memory gives; of small
// levels these are most or all of a block of 32, while the tensor core wants a part of each block
// from each of the four lanes that share an output.
#pragma once

#include "backbone/cuda/launch.h"

namespace medusa {
namespace {

/// Between lanes whose numbers differ in the bit `mask`: the lower one gives its `high` and gets
/// the other's `low`.
__device__ inline void exchange(uint32_t& low, uint32_t& high, int mask) {
  const bool upper = (static_cast<int>(threadIdx.x) & mask) != 0;
  const uint32_t got = shuffle_xor(upper ? low : high, mask);
  if (upper)
    low = got;
  else
    high = got;
}

/// Lanes 0 and 1 hold a block of eight words, lanes 2 and 3 the next one. Afterwards words 0 and 1
/// are of the first block, words 2 and 3 of the second: lane t holds of each the words 4 (t % 2) +
/// 2 (t / 2) and the next.
__device__ inline void spread_two_blocks(uint4& words) {
  exchange(words.x, words.z, 2);
  exchange(words.y, words.w, 2);
}

/// Each of four lanes holds a block of four words. Afterwards word b of lane t is word t of block
/// b.
__device__ inline void spread_four_blocks(uint4& words) {
  spread_two_blocks(words);
  exchange(words.x, words.y, 1);
  exchange(words.z, words.w, 1);
}

}  // namespace
}  // namespace medusa
