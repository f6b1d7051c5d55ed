// How sixteen outputs of a weight come from memory into the operand of a tensor core product. A
// warp reads a chunk at a time: of each output 64 consecutive bytes, 16 to a lane. A chunk has
// groups of 32 inputs, and a group is two products of depth 16.
//
// In the words of mma_16x8x16, lane (g, t) reads of outputs g and g + 8. Which of a group's inputs
// it holds is the reader's choice: a product's terms may stand in any order along k, if the rows'
// numbers stand in the same one. A reader has
//   kChunk, kGroups            inputs and groups of a chunk
//   kScaled, kShifted          whether scales() says something
//   begin(weight, output)      of the sixteen from this output on
//   words(i, input)            where the lane's 16 bytes of output g + 8 i lie; for a lane behind
//   the
//                              last input somewhere in the weight
//   ScaleWords                 what belongs to a chunk besides
//   scale_words(input)         of the chunk from this input on; zeros behind the last input
//   spread(words)              words to the lanes that multiply them; all lanes together
//   operand(words, group, a)   two products' words
//   scales(words, group)       of the group; all lanes together
//   row_offset()               first of a group's eight consecutive inputs of this lane
//   order_row(words)           those eight of a row, in the order of operand()
#pragma once

#include "backbone/cuda/launch.h"
#include "backbone/cuda/product_kernels.h"

namespace medusa {
namespace {

constexpr int kGroup = 32;        // inputs
constexpr int kTileOutputs = 16;  // outputs of a warp's product

/// Of outputs g and g + 8 of this lane: number = scale * level + shift.
struct GroupScales {
  float scale[2];
  float shift[2];
};

/// Output g (i = 0) or g + 8 (i = 1) of this lane; the last one where there are no more, so that
/// nothing is read behind the weight. What is made of it is not kept.
__device__ inline int64_t lane_output(const DeviceWeight& weight, int64_t first_output, int i) {
  const int64_t output = first_output + static_cast<int>(threadIdx.x) % kWarp / 4 + 8 * i;
  return output < weight.num_outputs ? output : weight.num_outputs - 1;
}

__device__ inline int lane_of_output() { return static_cast<int>(threadIdx.x) % 4; }

__device__ inline uint32_t word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

}  // namespace
}  // namespace medusa
