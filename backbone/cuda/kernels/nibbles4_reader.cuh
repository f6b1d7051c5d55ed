// A weight of quants 0 to 15 in blocks of 32 (weight_reader.cuh). Behind the exponent of 16 a quant
// stands as the bfloat16 number 16 + quant without any arithmetic; the 16 leaves through the shift,
// which meets the sum of the block's inputs in float32.
#pragma once

#include "backbone/cuda/kernels/weight_reader.cuh"

namespace medusa {
namespace {

class Nibbles4Reader {
 public:
  static constexpr int kChunk = 128, kGroups = 4;
  static constexpr bool kShifted = true;

  /// Lane t: a scale of block t and the min above it, of both outputs.
  struct ScaleWords {
    uint32_t halves[2];
  };

  __device__ void begin(const DeviceWeight& weight, int first_output) {
    weight_ = &weight;
    for (int i = 0; i < 2; ++i)
      blocks_[i] =
          lane_output(weight, first_output, i) * (num_inputs() / kGroup) + lane_of_output();
  }

  __device__ const void* words(int i, int input) const {
    const int block = blocks_[i] + (exists(input) ? input / kGroup : 0);
    return static_cast<const uint4*>(weight_->elements) + block;
  }

  __device__ ScaleWords scale_words(int input) const {
    if (!exists(input)) return {{0, 0}};
    ScaleWords out;
    for (int i = 0; i < 2; ++i) {
      const int block = blocks_[i] + input / kGroup;
      out.halves[i] = weight_->scales[block].bits;
      if (weight_->mins != nullptr) out.halves[i] |= uint32_t{weight_->mins[block].bits} << 16;
    }
    return out;
  }

  __device__ static void spread(uint4 (&words)[2]) {
    for (uint4& each : words) spread_four_blocks(each);
  }

  /// Quant i of a word and quant i + 4 are a pair.
  __device__ static void operand(const uint4 (&words)[2], int group, uint32_t (&a)[2][4]) {
    for (int i = 0; i < 2; ++i) {
      const uint32_t word = word_of(words[i], group);
      a[0][i] = above_sixteen(word << 3);
      a[0][i + 2] = above_sixteen(word >> 1);
      a[1][i] = above_sixteen(word >> 5);
      a[1][i + 2] = above_sixteen(word >> 9);
    }
  }

  __device__ static GroupScales scales(const ScaleWords& words, int group) {
    const int first = static_cast<int>(threadIdx.x % kWarp) / 4 * 4;
    GroupScales out;
    for (int i = 0; i < 2; ++i) {
      const uint32_t halves = shuffle(words.halves[i], first + group);
      out.scale[i] = half_to_float(halves);
      out.shift[i] = fmaf(-16.0F, out.scale[i], half_to_float(halves >> 16));
    }
    return out;
  }

  /// What spread_four_blocks() leaves to this lane.
  __device__ static int row_offset() { return 8 * lane_of_output(); }

  __device__ static uint4 order_row(const uint4& words) {
    return make_uint4((words.x & 0xFFFFU) | words.z << 16, words.x >> 16 | (words.z & 0xFFFF0000U),
                      (words.y & 0xFFFFU) | words.w << 16, words.y >> 16 | (words.w & 0xFFFF0000U));
  }

 private:
  __device__ int num_inputs() const { return static_cast<int>(weight_->num_inputs); }

  /// Whether this lane's block of the chunk from this input on is in the row.
  __device__ bool exists(int input) const {
    return input + kGroup * lane_of_output() < num_inputs();
  }

  /// Two quants at bits 3 to 6 of each half.
  __device__ static uint32_t above_sixteen(uint32_t quants) {
    return (quants & 0x00780078U) | 0x41804180U;
  }

  const DeviceWeight* weight_;
  int blocks_[2];  // the lane's of the first chunk
};

}  // namespace
}  // namespace medusa
