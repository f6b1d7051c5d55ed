// The words of backbone/cuda/launch.cuh on a CPU, so that the very source of our CUDA kernels is
// tested on every machine. Included before that file. Meaning of the words: CUDA C++ Programming
// Guide, chapters 5 and 10; of the tensor core product: PTX ISA, mma.m16n8k16.
//
// The threads of a block are fibers on the calling thread, which run until they meet a barrier or
// talk to their warp; a warp runs alone until it waits for its block or cluster, and clusters run
// one after the other. So a missing barrier shows only where an order of threads makes it matter:
// run tests in both orders. Not emulated: memory that is read before it was written (dynamic shared
// memory is filled with NaNs), bank conflicts, speed.
#pragma once

#define MEDUSA_EMULATED_CUDA 1

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "backbone/cuda/device_types.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__ __restrict
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }

// Of the fiber that runs.
inline dim3 threadIdx(0, 0, 0), blockIdx(0, 0, 0), blockDim, gridDim;

template <typename T>
T atomicAdd(T* address, T value) {  // one fiber runs at a time
  const T old = *address;
  *address = old + value;
  return old;
}

namespace medusa {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

/// What a launch asks of the device.
struct NotedLaunch {
  uintptr_t kernel = 0;  // address of its emulated function
  int cluster = 1, threads = 0;
  dim3 blocks;
  size_t shared_bytes = 0;  // dynamic
};
/// While one lives, launches are noted in its list and do not run, so that a step of any size costs
/// nothing. One at a time.
class LaunchNotes {
 public:
  LaunchNotes();
  ~LaunchNotes();
  LaunchNotes(const LaunchNotes&) = delete;
  LaunchNotes& operator=(const LaunchNotes&) = delete;

  std::vector<NotedLaunch> list;
};

/// In which order the threads of a block get their turns.
enum class EmulatedOrder { Ascending, Descending };
void set_emulated_order(EmulatedOrder order);

namespace emulated {

/// Notes a launch if such are noted. @returns  whether it is not to run.
bool note(const NotedLaunch& launch);

inline constexpr size_t kMostDeposit = 32;  // bytes that a lane says to its warp at once
using Deposits = unsigned char[kWarp][kMostDeposit];

/// Runs the blocks of a cluster, whose threads all call body(). The first one is blockIdx.
/// @throws std::logic_error  threads wait for each other at different places, one has not called
///                           wait_for_previous_kernel(), or a block read what another one had that
///                           has ended.
void run_cluster(int blocks, int threads, size_t shared_bytes, const std::function<void()>& body);

void* shared_bytes();
int rank_in_cluster();
/// What block `rank` of the cluster has where this one has `mine`.
const void* shared_of_rank(const void* mine, int rank);
void wait_for_block();
void wait_for_cluster();
void note_wait_for_previous_kernel();
/// Waits until all lanes of the warp have said something. @returns  what each said, valid until the
/// next but one.
const Deposits& tell_warp(const void* mine, size_t size);

/// @param global  null: zeros are copied.
void begin_copy(void* shared, const void* global);
void end_copy_group();
void wait_for_copies(int pending);  // until so many groups are under way
/// Runs at the latest moment that the device may: while it is waited for.
void begin_product(std::function<void()> product);
void end_product_group();
void wait_for_products(int pending);  // until so many groups are under way

}  // namespace emulated

// Not for the linker, which would take it for the device's own in a program that has both.
template <typename... Parameters, typename... Arguments>
static void launch_clusters(void (*kernel)(Parameters...), int cluster, dim3 blocks, int threads,
                            size_t shared_bytes, DeviceStream /*stream*/, Arguments... arguments) {
  ++num_started_kernels;
  if (emulated::note({reinterpret_cast<uintptr_t>(kernel), cluster, threads, blocks, shared_bytes}))
    return;
  gridDim = blocks;
  blockDim = dim3(static_cast<unsigned>(threads));
  for (unsigned z = 0; z < blocks.z; ++z)
    for (unsigned y = 0; y < blocks.y; ++y)
      for (unsigned x = 0; x < blocks.x; x += static_cast<unsigned>(cluster)) {
        blockIdx = dim3(x, y, z);
        emulated::run_cluster(cluster, threads, shared_bytes, [&] { kernel(arguments...); });
      }
}
template <typename... Parameters, typename... Arguments>
static void launch(void (*kernel)(Parameters...), dim3 blocks, int threads, size_t shared_bytes,
                   DeviceStream stream, Arguments... arguments) {
  launch_clusters(kernel, 1, blocks, threads, shared_bytes, stream, arguments...);
}

/// See set_emulated_clusters().
bool emulated_clusters();
static inline bool has_clusters() { return emulated_clusters(); }

inline void let_next_kernel_begin() {}
inline void wait_for_previous_kernel() { emulated::note_wait_for_previous_kernel(); }
inline int cluster_rank() { return emulated::rank_in_cluster(); }
inline void sync_cluster() { emulated::wait_for_cluster(); }
template <typename T>
const T* shared_of_rank(const T* mine, int rank) {
  return static_cast<const T*>(emulated::shared_of_rank(mine, rank));
}

template <typename T>
T* shared_memory() {
  return static_cast<T*>(emulated::shared_bytes());
}

template <typename T>
T shuffle(T value, int lane) {
  static_assert(sizeof(T) <= emulated::kMostDeposit);
  const auto& all = emulated::tell_warp(&value, sizeof value);
  T out;
  std::memcpy(&out, all[lane % kWarp], sizeof out);
  return out;
}
template <typename T>
T shuffle_xor(T value, int mask) {
  return shuffle(value, static_cast<int>(threadIdx.x % kWarp) ^ mask);
}
inline unsigned ballot(bool predicate) {
  const auto& all = emulated::tell_warp(&predicate, sizeof predicate);
  unsigned bits = 0;
  for (int lane = 0; lane < kWarp; ++lane)
    if (all[lane][0] != 0) bits |= 1U << lane;
  return bits;
}
inline void sync_warp() { static_cast<void>(ballot(false)); }
inline void sync_block() { emulated::wait_for_block(); }

inline void memory_fence() {}
inline float4 load_fresh(const float* from) { return *reinterpret_cast<const float4*>(from); }
inline int lowest_bit(uint64_t bits) { return std::countr_zero(bits); }

/// Each term is exact and the sum rounded once; tensor cores round in an order of their own.
void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

inline void load_matrices(uint32_t (&out)[4], const void* shared) {
  const auto& all = emulated::tell_warp(&shared, sizeof shared);
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned char* row;
    std::memcpy(&row, all[8 * i + lane / 4], sizeof row);
    std::memcpy(&out[i], row + lane % 4 * 4, sizeof out[i]);
  }
}

inline bool multiplies_in_warpgroups() { return emulated_clusters(); }
/// @param line  of a, or of b: 128 bytes each.
inline float warpgroup_operand(const void* lines, int line, int unit, int k) {
  const int place = line * 8 + ((unit + k / 8) ^ (line % 8));
  uint16_t bits;
  std::memcpy(&bits, static_cast<const unsigned char*>(lines) + place * 16 + k % 8 * 2,
              sizeof bits);
  const uint32_t wide = uint32_t{bits} << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}
template <int kColumns>
void multiply_lines(float (&d)[kColumns][4], const void* a, const void* b, int unit) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
  const int first = static_cast<int>(threadIdx.x) / kWarp % 4 * 16 + g;
  for (int i = 0; i < 4; ++i) {
    float row[16];
    for (int k = 0; k < 16; ++k) row[k] = warpgroup_operand(a, first + i / 2 * 8, unit, k);
    for (int column = 0; column < kColumns; ++column) {
      double sum = static_cast<double>(d[column][i]);
      for (int k = 0; k < 16; ++k)
        sum += static_cast<double>(row[k]) *
               static_cast<double>(warpgroup_operand(b, column * 8 + 2 * t + i % 2, unit, k));
      d[column][i] = static_cast<float>(sum);
    }
  }
}
/// Rounds as mma_16x8x16() does.
template <int kColumns>
void warpgroup_multiply(float (&d)[kColumns][4], const void* a, const void* b, int unit) {
  emulated::begin_product([&d, a, b, unit] { multiply_lines(d, a, b, unit); });
}
inline void warpgroup_publish() {}
inline void warpgroup_begin() {}
inline void warpgroup_commit() { emulated::end_product_group(); }
template <int kPending, typename Sums>
void warpgroup_wait(Sums& /*d*/) {
  emulated::wait_for_products(kPending);
}

/// The 16 bytes are NaNs until the copy is waited for.
inline void copy_async16(void* shared, const void* global) { emulated::begin_copy(shared, global); }
inline void copy_async16_or_zeros(void* shared, const void* global, bool there) {
  emulated::begin_copy(shared, there ? global : nullptr);
}
inline void copy_async_commit() { emulated::end_copy_group(); }
template <int kPending>
void copy_async_wait() {
  emulated::wait_for_copies(kPending);
}

}  // namespace medusa

#include "backbone/cuda/launch.cuh"
