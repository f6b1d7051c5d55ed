// A weight of int8 quants in blocks of 32 (weight_reader.cuh). Quants are exact in bfloat16; the
// scale enters in float32.
#pragma once

#include "backbone/cuda/kernels/weight_reader.cuh"

namespace medusa {
namespace {

/// Two bytes of a word as a pair of bfloat16 elements, which are the bytes less 128. A byte behind
/// the exponent of 2^23 is 2^23 more than itself; a number of eight bits loses nothing with the
/// lower half of its float.
__device__ inline uint32_t bf16_pair_of_bytes(uint32_t word, int first_bit) {
  constexpr uint32_t kBefore = 0x4B000000U;  // 2^23
  constexpr float kZero = 8388608.0F + 128.0F;
  const uint32_t low = bits_of_float(float_of_bits(kBefore | (word >> first_bit & 0xFFU)) - kZero);
  const uint32_t high =
      bits_of_float(float_of_bits(kBefore | (word >> (first_bit + 8) & 0xFFU)) - kZero);
  return low >> 16 | (high & 0xFFFF0000U);
}

/// @tparam kMins  whether the weight has mins.
template <bool kMins>
class Int8Reader {
 public:
  static constexpr int kChunk = 64, kGroups = 2;
  static constexpr bool kShifted = kMins;

  /// A scale and the min above it: of lanes 0 and 1 those of output g's two blocks, of lanes 2
  /// and 3 those of g + 8's.
  struct ScaleWords {
    uint32_t halves;
  };

  __device__ void begin(const DeviceWeight& weight, int first_output) {
    weight_ = &weight;

    const int t = lane_of_output(), blocks = num_inputs() / kGroup;
    for (int i = 0; i < 2; ++i) words_[i] = lane_output(weight, first_output, i) * blocks * 2 + t;
    block_ = lane_output(weight, first_output, t / 2) * blocks + t % 2;
  }

  __device__ const void* words(int i, int input) const {
    const bool exists = input + 16 * lane_of_output() < num_inputs();
    return static_cast<const uint4*>(weight_->elements) + words_[i] + (exists ? input / 16 : 0);
  }

  __device__ ScaleWords scale_words(int input) const {
    if (input + kGroup * (lane_of_output() % 2) >= num_inputs()) return {0};
    const int block = block_ + input / kGroup;
    ScaleWords out{weight_->scales[block].bits};
    if constexpr (kMins) out.halves |= uint32_t{weight_->mins[block].bits} << 16;
    return out;
  }

  __device__ static void spread(uint4 (&words)[2]) {
    for (uint4& each : words) spread_two_blocks(each);
  }

  __device__ static void operand(const uint4 (&words)[2], int group, uint32_t (&a)[2][4]) {
    for (int i = 0; i < 2; ++i)
      for (int step = 0; step < 2; ++step) {
        const uint32_t word = word_of(words[i], 2 * group + step) ^ 0x80808080U;
        a[step][i] = bf16_pair_of_bytes(word, 0);
        a[step][i + 2] = bf16_pair_of_bytes(word, 16);
      }
  }

  __device__ static GroupScales scales(const ScaleWords& words, int group) {
    const int first = static_cast<int>(threadIdx.x % kWarp) / 4 * 4;
    GroupScales out;
    for (int i = 0; i < 2; ++i) {
      const uint32_t halves = shuffle(words.halves, first + 2 * i + group);
      out.scale[i] = half_to_float(halves);
      out.shift[i] = kMins ? half_to_float(halves >> 16) : 0;
    }
    return out;
  }

  /// What spread_two_blocks() leaves to this lane.
  __device__ static int row_offset() {
    const int t = lane_of_output();
    return 16 * (t % 2) + 8 * (t / 2);
  }
  __device__ static uint4 order_row(const uint4& words) { return words; }

 private:
  __device__ int num_inputs() const { return static_cast<int>(weight_->num_inputs); }

  const DeviceWeight* weight_;
  int words_[2];  // the lane's 16 bytes of the first chunk
  int block_;     // whose scale of that chunk it holds
};

}  // namespace
}  // namespace medusa
