// The few words of CUDA C++ that our kernels are written in: how one is launched, how the threads
// of a warp talk, the tensor core product. Included by kernel files alone. Compiled by nvcc they
// are the device's own; tests include tests/cuda/emulated_cuda.h first, which runs the same kernels
// on a CPU.
#pragma once

#include <cstdint>

#include "backbone/cuda/device_types.h"

#ifndef MEDUSA_EMULATED_CUDA

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace medusa {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

/// Starts a kernel. @param shared_bytes  of shared_memory().
/// @throws std::runtime_error  the launch was refused.
///
/// Static: a test program holds the emulated one of the same name beside it.
template <typename... Parameters, typename... Arguments>
static void launch(void (*kernel)(Parameters...), dim3 blocks, int threads, size_t shared_bytes,
                   DeviceStream stream, Arguments... arguments) {
  ++num_started_kernels;
  constexpr size_t kUnasked = 48 * 1024;  // a block gets more only where it was asked for
  if (shared_bytes > kUnasked)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(shared_bytes));
  kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("a CUDA kernel was not started: ") +
                             cudaGetErrorString(error));
}

/// The block's dynamic shared memory, aligned to 16 bytes.
template <typename T>
__device__ T* shared_memory() {
  extern __shared__ __align__(16) unsigned char medusa_shared_bytes[];
  return reinterpret_cast<T*>(medusa_shared_bytes);
}

// All lanes of a warp call these together.
template <typename T>
__device__ T shuffle(T value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
template <typename T>
__device__ T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}
__device__ inline unsigned ballot(bool predicate) { return __ballot_sync(kAllLanes, predicate); }
__device__ inline void sync_warp() { __syncwarp(); }
__device__ inline void sync_block() { __syncthreads(); }

/// d += a · b on the tensor cores: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 of a whole
/// warp. With g = lane / 4 and t = lane % 4, two bfloat16 numbers to a word, the lower k in the low
/// half: a: (row g, k 2t), (row g + 8, k 2t), (row g, k 2t + 8), (row g + 8, k 2t + 8); b: (k 2t,
/// column g), (k 2t + 8, column g); d: (row g, columns 2t and 2t + 1), (row g + 8, the same
/// columns).
__device__ inline void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// 16 bytes from global to shared memory without waiting; both addresses are multiples of 16.
__device__ inline void copy_async16(void* shared, const void* global) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(global) : "memory");
}
/// Ends a group of copies of this thread.
__device__ inline void copy_async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
/// Waits until at most `kPending` groups of this thread are under way; other threads' are ready
/// after a sync_block().
template <int kPending>
__device__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

/// 16 bytes that are read once: not kept in the first-level cache.
__device__ inline uint4 load_once(const void* global) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(global));
  return x;
}

}  // namespace medusa

#endif  // MEDUSA_EMULATED_CUDA

namespace medusa {

__device__ inline float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
__device__ inline uint32_t bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
__device__ inline float to_float(Bf16 x) { return float_of_bits(uint32_t{x.bits} << 16); }
/// To the nearest, of two equally near ones the even one; a NaN stays one.
__device__ inline Bf16 to_bf16(float x) {
#ifdef __CUDA_ARCH__
  uint16_t rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  return {rounded};
#else
  const uint32_t bits = bits_of_float(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
#endif
}
/// Two numbers in a word, the first in the low half.
__device__ inline uint32_t pack_bf16(float low, float high) {
#ifdef __CUDA_ARCH__
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return uint32_t{to_bf16(low).bits} | uint32_t{to_bf16(high).bits} << 16;
#endif
}

}  // namespace medusa
