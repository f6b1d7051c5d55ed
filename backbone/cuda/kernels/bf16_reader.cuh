// A bfloat16 weight as it is (weight_reader.cuh).
#pragma once

#include "backbone/cuda/kernels/weight_reader.cuh"

namespace medusa {
namespace {

class Bf16Reader {
 public:
  static constexpr int kChunk = 32, kGroups = 1;
  static constexpr bool kScaled = false, kShifted = false;

  struct ScaleWords {};

  __device__ void begin(const DeviceWeight& weight, int64_t first_output) {
    num_inputs_ = static_cast<int>(weight.num_inputs);

    for (int i = 0; i < 2; ++i)
      elements_[i] = static_cast<const Bf16*>(weight.elements) +
                     lane_output(weight, first_output, i) * num_inputs_ + row_offset();
  }

  __device__ const void* words(int i, int input) const {
    return elements_[i] + (input < num_inputs_ ? input : 0);
  }

  __device__ static ScaleWords scale_words(int) { return {}; }
  __device__ static void spread(uint4 (&)[2]) {}

  __device__ static void operand(const uint4 (&words)[2], int, uint32_t (&a)[2][4]) {
    for (int i = 0; i < 2; ++i) {
      a[0][i] = words[i].x;
      a[0][i + 2] = words[i].y;
      a[1][i] = words[i].z;
      a[1][i + 2] = words[i].w;
    }
  }

  __device__ static GroupScales scales(const ScaleWords&, int) { return {{1, 1}, {0, 0}}; }

  __device__ static int row_offset() { return 8 * lane_of_output(); }
  __device__ static uint4 order_row(const uint4& words) { return words; }

 private:
  const Bf16* elements_[2];
  int num_inputs_;
};

}  // namespace
}  // namespace medusa
