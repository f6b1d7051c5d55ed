// How sixteen outputs of a weight in blocks come from memory into the operand of a tensor core
// product. A warp reads a chunk at a time: of each output 64 consecutive bytes, 16 to a lane. A
// chunk has groups of 32 inputs, and a group is two products of depth 16.
//
// In the words of mma_16x8x16, lane (g, t) reads of outputs g and g + 8. Which of a group's inputs
// it holds is the reader's choice: a product's terms may stand in any order along k, if the rows'
// numbers stand in the same one. A reader has
//   kChunk, kGroups            inputs and groups of a chunk
//   kShifted                   whether scales() has shifts
//   begin(weight, output)      of the sixteen from this output on
//   words(i, input)            where the lane's 16 bytes of output g + 8 i lie; for a lane behind
//                              the last input somewhere in the weight
//   ScaleWords                 what belongs to a chunk besides
//   scale_words(input)         of the chunk from this input on; zeros behind the last input
//   spread(words)              words to the lanes that multiply them; all lanes together
//   operand(words, group, a)   two products' words
//   scales(words, group)       of the group; all lanes together
//   row_offset()               first of a group's eight consecutive inputs of this lane
//   order_row(words)           those eight of a row, in the order of operand()
//
// Between chunks a reader keeps places in the weight, not addresses: numbers of 32 bits, counted in
// what it reads there, leave more registers to the sums. They reach over 2^35 elements.
//
// In small quants the 16 bytes of a lane are most or all of a block of 32, while the tensor core
// wants a part of each block from each of the four lanes that share an output: words change lanes
// (exchange, spread_two_blocks, spread_four_blocks).
#pragma once

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/launch.cuh"

namespace medusa {
namespace {

/// A half precision number without CUDA's own type, so that tests read it with the same code. Of a
/// finite number, exactly: its exponent is moved by a product, which also gives the smallest
/// numbers their leading bit.
__device__ inline float half_to_float(uint32_t bits) {
  const uint32_t moved = (bits & 0x7FFFU) << 13 | (bits & 0x8000U) << 16;
  return float_of_bits(moved) * 0x1.0p112F;
}

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

constexpr int kGroup = 32;        // inputs
constexpr int kTileOutputs = 16;  // outputs of a warp's product

/// Of outputs g and g + 8 of this lane: number = scale * quant + shift.
struct GroupScales {
  float scale[2];
  float shift[2];
};

/// Output g (i = 0) or g + 8 (i = 1) of this lane; the last one where there are no more, so that
/// nothing is read behind the weight. What is made of it is not kept.
__device__ inline int lane_output(const DeviceWeight& weight, int first_output, int i) {
  const int output = first_output + static_cast<int>(threadIdx.x % kWarp) / 4 + 8 * i;
  const int last = static_cast<int>(weight.num_outputs) - 1;
  return output < last ? output : last;
}

__device__ inline int lane_of_output() { return static_cast<int>(threadIdx.x) % 4; }

__device__ inline uint32_t word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

}  // namespace
}  // namespace medusa
