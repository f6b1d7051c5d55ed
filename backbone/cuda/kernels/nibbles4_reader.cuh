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

  __device__ void begin(const DeviceWeight& weight, int64_t first_output) {
    num_inputs_ = static_cast<int>(weight.num_inputs);
    has_mins_ = weight.mins != nullptr;

    const int t = lane_of_output();
    for (int i = 0; i < 2; ++i) {
      const int64_t output = lane_output(weight, first_output, i);
      const int64_t block = output * (num_inputs_ / kGroup) + t;
      quants_[i] =
          static_cast<const unsigned char*>(weight.elements) + output * (num_inputs_ / 2) + 16 * t;
      scales_[i] = weight.scales + block;
      if (has_mins_) mins_[i] = weight.mins + block;
    }
  }

  __device__ const void* words(int i, int input) const {
    return quants_[i] + (exists(input) ? input / 2 : 0);
  }

  __device__ ScaleWords scale_words(int input) const {
    if (!exists(input)) return {{0, 0}};
    ScaleWords out;
    for (int i = 0; i < 2; ++i) {
      out.halves[i] = scales_[i][input / kGroup].bits;
      if (has_mins_) out.halves[i] |= uint32_t{mins_[i][input / kGroup].bits} << 16;
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
    const int first = static_cast<int>(threadIdx.x) % kWarp / 4 * 4;
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
  /// Whether this lane's block of the chunk from this input on is in the row.
  __device__ bool exists(int input) const {
    return input + kGroup * lane_of_output() < num_inputs_;
  }

  /// Two quants at bits 3 to 6 of each half.
  __device__ static uint32_t above_sixteen(uint32_t quants) {
    return (quants & 0x00780078U) | 0x41804180U;
  }

  const unsigned char* quants_[2];
  const Half16* scales_[2];
  const Half16* mins_[2] = {};
  bool has_mins_;
  int num_inputs_;
};

}  // namespace
}  // namespace medusa
