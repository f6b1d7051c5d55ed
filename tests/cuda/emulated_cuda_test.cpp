#include "tests/cuda/emulated_cuda.h"

#include <gtest/gtest.h>

#include <vector>

namespace medusa {
namespace {

class EmulatedCuda : public testing::TestWithParam<EmulatedOrder> {
 protected:
  EmulatedCuda() { set_emulated_order(GetParam()); }
  ~EmulatedCuda() override { set_emulated_order(EmulatedOrder::Ascending); }
};

void reverse_block(const int* from, int* to) {
  begin_kernel();
  __shared__ int kept[96];
  const unsigned i = threadIdx.x, n = blockDim.x;
  kept[i] = from[blockIdx.x * n + i];
  sync_block();
  to[blockIdx.x * n + i] = kept[n - 1 - i];
}

TEST_P(EmulatedCuda, ThreadsWaitForTheirBlock) {
  std::vector<int> from(192), to(192);
  for (int i = 0; i < 192; ++i) from[static_cast<size_t>(i)] = i;
  launch(reverse_block, dim3(2), 96, 0, nullptr, from.data(), to.data());
  for (int i = 0; i < 192; ++i)
    EXPECT_EQ(to[static_cast<size_t>(i)], i / 96 * 96 + 95 - i % 96) << i;
}

void race_ahead(int* seen) {
  begin_kernel();
  __shared__ int told[3];
  const unsigned warp = threadIdx.x / 32;
  told[warp] = 0;
  sync_block();
  told[warp] = 1;
  sync_warp();
  int others = 0;  // how many warps have come so far; nobody waits for them
  for (const int each : told) others += each;
  seen[warp] = others;
}

TEST_P(EmulatedCuda, AWarpRunsAheadOfTheOthers) {
  std::vector<int> seen(3);
  launch(race_ahead, dim3(1), 96, 0, nullptr, seen.data());
  EXPECT_EQ(seen, GetParam() == EmulatedOrder::Ascending ? (std::vector<int>{1, 2, 3})
                                                         : (std::vector<int>{3, 2, 1}));
}

void copy_in_groups(const float* from, float* out) {
  begin_kernel();
  auto* shared = shared_memory<float>();
  for (int group = 0; group < 3; ++group) {
    copy_async16(shared + 4 * group, from + 4 * group);
    copy_async_commit();
  }
  copy_async_wait<1>();
  for (int i = 0; i < 12; ++i) out[i] = shared[i];
  copy_async_wait<0>();
  for (int i = 0; i < 12; ++i) out[12 + i] = shared[i];
}

TEST_P(EmulatedCuda, CopiesArriveWhenTheyAreWaitedFor) {
  std::vector<float> from(12, 5), out(24);
  launch(copy_in_groups, dim3(1), 1, 48, nullptr, from.data(), out.data());
  for (size_t i = 0; i < 24; ++i)
    EXPECT_EQ(std::isnan(out[i]), i >= 8 && i < 12) << i << ": " << out[i];
}

void sum_warp(const float* from, float* sums, unsigned* odd) {
  begin_kernel();
  float x = from[threadIdx.x];
  for (int mask = 16; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
  sums[threadIdx.x] = shuffle(x, 7);
  odd[threadIdx.x / 32] = ballot(threadIdx.x % 2 == 1);
}

TEST_P(EmulatedCuda, LanesTalkToTheirWarp) {
  std::vector<float> from(64), sums(64);
  std::vector<unsigned> odd(2);
  for (size_t i = 0; i < 64; ++i) from[i] = static_cast<float>(i);
  launch(sum_warp, dim3(1), 64, 0, nullptr, from.data(), sums.data(), odd.data());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(sums[i], i < 32 ? 496.0F : 1520.0F) << i;
  EXPECT_EQ(odd, (std::vector<unsigned>{0xAAAAAAAAU, 0xAAAAAAAAU}));
}

/// a [16, 16] and b [16, 8] row-major, to the places that the tensor core reads.
void multiply(const float* a, const float* b, float* d) {
  begin_kernel();
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  uint32_t of_a[4], of_b[2];
  for (int i = 0; i < 4; ++i) {
    const float* from = a + (g + (i % 2) * 8) * 16 + 2 * t + i / 2 * 8;
    of_a[i] = pack_bf16(from[0], from[1]);
  }
  for (int i = 0; i < 2; ++i) {
    const float* from = b + (2 * t + i * 8) * 8 + g;
    of_b[i] = pack_bf16(from[0], from[8]);
  }
  float sums[4] = {1, 1, 1, 1};
  mma_16x8x16(sums, of_a, of_b);
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
}

TEST_P(EmulatedCuda, TheTensorCoreMultipliesMatrices) {
  std::vector<float> a(256), b(128), d(128);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 13) - 6;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 11) - 5;
  launch(multiply, dim3(1), 32, 0, nullptr, a.data(), b.data(), d.data());
  for (size_t row = 0; row < 16; ++row)
    for (size_t column = 0; column < 8; ++column) {
      float sum = 1;
      for (size_t k = 0; k < 16; ++k) sum += a[row * 16 + k] * b[k * 8 + column];
      EXPECT_EQ(d[row * 8 + column], sum) << row << ' ' << column;
    }
}

void read_unwritten(float* out) {
  begin_kernel();
  out[threadIdx.x] = shared_memory<float>()[threadIdx.x];
}

TEST_P(EmulatedCuda, SharedMemoryBeginsAsNan) {
  std::vector<float> out(4);
  launch(read_unwritten, dim3(1), 4, 16, nullptr, out.data());
  for (const float x : out) EXPECT_TRUE(std::isnan(x));
}

void wait_apart() {
  begin_kernel();
  if (threadIdx.x == 0)
    sync_block();
  else
    sync_warp();
}

TEST_P(EmulatedCuda, ThreadsThatWaitForEachOtherAreReported) {
  EXPECT_THROW(launch(wait_apart, dim3(1), 2, 0, nullptr), std::logic_error);
}

void let_one_not_wait(int thread) {
  if (static_cast<int>(threadIdx.x) != thread) begin_kernel();
}

TEST_P(EmulatedCuda, ThreadsThatDoNotWaitForThePreviousKernelAreReported) {
  EXPECT_NO_THROW(launch(let_one_not_wait, dim3(1), 40, 0, nullptr, 40));
  EXPECT_THROW(launch(let_one_not_wait, dim3(1), 40, 0, nullptr, 39), std::logic_error);
}

void pass_on(int* out) {
  begin_kernel();
  auto* mine = shared_memory<int>();
  if (threadIdx.x == 0) mine[0] = static_cast<int>(blockIdx.x);
  sync_cluster();
  const int next = (cluster_rank() + 1) % 3;
  out[blockIdx.x * blockDim.x + threadIdx.x] = *shared_of_rank(mine, next);
  sync_cluster();
}

TEST_P(EmulatedCuda, TheBlocksOfAClusterReadEachOthersMemory) {
  std::vector<int> out(6 * 40);
  launch_clusters(pass_on, 3, dim3(6), 40, 16, nullptr, out.data());
  for (int i = 0; i < 240; ++i) {
    const int block = i / 40;
    EXPECT_EQ(out[static_cast<size_t>(i)], block / 3 * 3 + (block + 1) % 3) << i;
  }
}

void leave_the_cluster(int* out) {
  begin_kernel();
  auto* mine = shared_memory<int>();
  mine[0] = 5;
  sync_cluster();
  out[blockIdx.x] = *shared_of_rank(mine, 1 - cluster_rank());  // the other one may have ended
}

TEST_P(EmulatedCuda, ABlockThatEndsBeforeOthersHaveReadItsMemoryIsReported) {
  std::vector<int> out(2);
  EXPECT_THROW(launch_clusters(leave_the_cluster, 2, dim3(2), 1, 16, nullptr, out.data()),
               std::logic_error);
}

void read_matrices(const uint4* from, uint32_t* out) {
  begin_kernel();
  uint32_t words[4];
  load_matrices(words, from + threadIdx.x);
  for (unsigned i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = words[i];
}

TEST_P(EmulatedCuda, MatricesComeAsTheTensorCoreReadsThem) {
  std::vector<uint32_t> from(128), out(128);
  for (uint32_t i = 0; i < 128; ++i) from[i] = i;
  alignas(16) uint4 lines[32];
  std::memcpy(lines, from.data(), sizeof lines);
  launch(read_matrices, dim3(1), 32, 0, nullptr, static_cast<const uint4*>(lines), out.data());
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(out[4 * lane + i], 32 * i + 4 * (lane / 4) + lane % 4);
}

void leave_early(int* out) {
  begin_kernel();
  if (threadIdx.x >= 40) return;
  sync_block();
  out[threadIdx.x] = 1;
}

TEST_P(EmulatedCuda, ThreadsThatAreDoneAreNotWaitedFor) {
  std::vector<int> out(64);
  launch(leave_early, dim3(1), 64, 0, nullptr, out.data());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 40 ? 1 : 0);
}

TEST(DeviceMath, RoundToTheNearestBf16) {
  EXPECT_EQ(to_bf16(1.0F).bits, 0x3F80);
  EXPECT_EQ(to_bf16(float_of_bits(0x3F808000U)).bits, 0x3F80) << "half way: to the even one";
  EXPECT_EQ(to_bf16(float_of_bits(0x3F818000U)).bits, 0x3F82);
  EXPECT_EQ(to_bf16(float_of_bits(0x3F808001U)).bits, 0x3F81);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(float_of_bits(0x7F800001U)))));
  EXPECT_EQ(pack_bf16(1, -2), 0xC0003F80U);
}

INSTANTIATE_TEST_SUITE_P(Orders, EmulatedCuda,
                         testing::Values(EmulatedOrder::Ascending, EmulatedOrder::Descending));

}  // namespace
}  // namespace medusa
