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

/// Whether blocks may form clusters, and a kernel may begin before the one before it has ended:
/// from compute capability 9.0 on. Of the GPU that is current at the first call.
static bool has_clusters() {
  static const bool has = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           major >= 9;
  }();
  return has;
}

/// Starts a kernel whose blocks form clusters of so many along x. It may begin before the kernel
/// before it has ended, so every thread calls wait_for_previous_kernel().
/// @param shared_bytes  of shared_memory().
/// @throws std::runtime_error  the launch was refused.
///
/// Static: a test program holds the emulated one of the same name beside it.
template <typename... Parameters, typename... Arguments>
static void launch_clusters(void (*kernel)(Parameters...), int cluster, dim3 blocks, int threads,
                            size_t shared_bytes, DeviceStream stream, Arguments... arguments) {
  ++num_started_kernels;
  const auto check = [](cudaError_t error) {
    if (error != cudaSuccess)
      throw std::runtime_error(std::string("a CUDA kernel was not started: ") +
                               cudaGetErrorString(error));
  };
  constexpr size_t kUnasked = 48 * 1024;  // a block gets more only where it was asked for
  if (shared_bytes > kUnasked)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = !has_clusters() ? 0 : cluster > 1 ? 2 : 1;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

/// The same without clusters.
template <typename... Parameters, typename... Arguments>
static void launch(void (*kernel)(Parameters...), dim3 blocks, int threads, size_t shared_bytes,
                   DeviceStream stream, Arguments... arguments) {
  launch_clusters(kernel, 1, blocks, threads, shared_bytes, stream, arguments...);
}

/// Waits until the kernel before has ended and what it wrote can be read. Every thread of every
/// kernel, before it reads or writes what other kernels do, and before it returns: the kernel after
/// relies on it for all kernels before.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
/// From here on the next kernel's blocks may take the room that is free, up to where they wait.
__device__ inline void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

// Of a cluster's blocks, which run at the same time.
__device__ inline int cluster_rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
#endif
  return static_cast<int>(rank);
}
/// Waits for all threads of the cluster; what they wrote to shared memory can be read.
__device__ inline void sync_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
#endif
}
/// Where another block of the cluster has what is here at `mine` in shared memory.
template <typename T>
__device__ const T* shared_of_rank(const T* mine, int rank) {
  const T* theirs = mine;
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.u64 %0, %1, %2;\n" : "=l"(theirs) : "l"(mine), "r"(rank));
#endif
  return theirs;
}

/// The block's dynamic shared memory, aligned to 1024 bytes.
template <typename T>
__device__ T* shared_memory() {
  extern __shared__ __align__(1024) unsigned char medusa_shared_bytes[];
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

/// What this block has written before, and what it has seen others write, comes before what it
/// writes and reads behind: with a barrier on either side, for all threads.
__device__ inline void memory_fence() { __threadfence(); }
/// Of memory that another block of the same kernel has written; at a multiple of 16 bytes.
__device__ inline float4 load_fresh(const float* from) {
  return __ldcg(reinterpret_cast<const float4*>(from));
}
/// The number of the lowest set bit; some are set.
__device__ inline int lowest_bit(uint64_t bits) {
  return __ffsll(static_cast<long long>(bits)) - 1;
}

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

/// Four matrices of 8 x 8 bfloat16 numbers out of shared memory: lane 8 i + r says where row r of
/// matrix i lies, 16 bytes at a multiple of 16, and gets elements 2 t and 2 t + 1 of row g of each
/// (lane = 4 g + t): as mma_16x8x16() takes them.
__device__ inline void load_matrices(uint32_t (&out)[4], const void* shared) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(from)
               : "memory");
}

/// Whether the four warps of a warpgroup multiply together what lies in shared memory (wgmma): in
/// machine code for 9.0a alone.
__device__ constexpr bool multiplies_in_warpgroups() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  return true;
#else
  return false;
#endif
}

/// Begins d += a · b of a warpgroup: wgmma.m64nNk16 with N = 8 kColumns, whose operands are lines
/// of 128 bytes in shared memory from a multiple of 1024 on, unit u (of 16 bytes) of line i at
/// place u ^ i % 8: 64 lines of a, N of b. Of each the units `unit` and `unit` + 1 are multiplied.
/// A lane of warp w has of d what mma_16x8x16() leaves it: rows 16 w + g and 16 w + g + 8.
///
/// d may be used after warpgroup_wait().
template <int kColumns>
__device__ void warpgroup_multiply(float (&d)[kColumns][4], const void* a, const void* b,
                                   int unit) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // Swizzled by 128 bytes; eight lines to the next eight: 1024 bytes.
  constexpr uint64_t kLayout = uint64_t{1} << 62 | uint64_t{64} << 32 | uint64_t{1} << 16;
  const auto describe = [&](const void* lines) {
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(lines));
    return kLayout | ((at & 0x3FFFFU) >> 4) + static_cast<unsigned>(unit);
  };
  const uint64_t from_a = describe(a), from_b = describe(b);
#define MEDUSA_TEN(tens)                                                                           \
  "%" tens "0,%" tens "1,%" tens "2,%" tens "3,%" tens "4,%" tens "5,%" tens "6,%" tens "7,%" tens \
  "8,%" tens "9,"
#define MEDUSA_FOUR(column) \
  "+f"(d[column][0]), "+f"(d[column][1]), "+f"(d[column][2]), "+f"(d[column][3])
#define MEDUSA_EIGHT_COLUMNS(column)                                                              \
  MEDUSA_FOUR(column), MEDUSA_FOUR(column + 1), MEDUSA_FOUR(column + 2), MEDUSA_FOUR(column + 3), \
      MEDUSA_FOUR(column + 4), MEDUSA_FOUR(column + 5), MEDUSA_FOUR(column + 6),                  \
      MEDUSA_FOUR(column + 7)
#define MEDUSA_WGMMA(n, registers, operand_a, operand_b, ...)                              \
  asm volatile("{.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" n \
               "k16.f32.bf16.bf16 {" registers "}, " operand_a ", " operand_b              \
               ", p, 1, 1, 0, 0;\n}\n"                                                     \
               : __VA_ARGS__                                                               \
               : "l"(from_a), "l"(from_b))
  static_assert(kColumns == 1 || kColumns == 2 || kColumns == 4 || kColumns == 8 || kColumns == 16);
  if constexpr (kColumns == 1)
    MEDUSA_WGMMA("8", "%0,%1,%2,%3", "%4", "%5", MEDUSA_FOUR(0));
  else if constexpr (kColumns == 2)
    MEDUSA_WGMMA("16", "%0,%1,%2,%3,%4,%5,%6,%7", "%8", "%9", MEDUSA_FOUR(0), MEDUSA_FOUR(1));
  else if constexpr (kColumns == 4)
    MEDUSA_WGMMA("32", MEDUSA_TEN("") "%10,%11,%12,%13,%14,%15", "%16", "%17", MEDUSA_FOUR(0),
                 MEDUSA_FOUR(1), MEDUSA_FOUR(2), MEDUSA_FOUR(3));
  else if constexpr (kColumns == 8)
    MEDUSA_WGMMA("64", MEDUSA_TEN("") MEDUSA_TEN("1") MEDUSA_TEN("2") "%30,%31", "%32", "%33",
                 MEDUSA_EIGHT_COLUMNS(0));
  else
    MEDUSA_WGMMA("128",
                 MEDUSA_TEN("") MEDUSA_TEN("1") MEDUSA_TEN("2") MEDUSA_TEN("3") MEDUSA_TEN("4")
                     MEDUSA_TEN("5") "%60,%61,%62,%63",
                 "%64", "%65", MEDUSA_EIGHT_COLUMNS(0), MEDUSA_EIGHT_COLUMNS(8));
#undef MEDUSA_WGMMA
#undef MEDUSA_EIGHT_COLUMNS
#undef MEDUSA_FOUR
#undef MEDUSA_TEN
#endif
}
/// Between this thread's stores and arrived copies to shared memory and the barrier behind which
/// warpgroups multiply them.
__device__ inline void warpgroup_publish() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
}
/// Before the first product of a group.
__device__ inline void warpgroup_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#endif
}
/// Ends the products' group.
__device__ inline void warpgroup_commit() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#endif
}
/// Waits until at most kPending groups of this warpgroup's products are under way. What they read
/// may be written then, and d be used if none is.
template <int kPending, int kTiles, int kColumns>
__device__ void warpgroup_wait(float (&d)[kTiles][kColumns][4]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
  if constexpr (kPending == 0)
    for (int tile = 0; tile < kTiles; ++tile)  // what follows reads d
      for (int column = 0; column < kColumns; ++column)
        for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(d[tile][column][i])::"memory");
#endif
}

/// 16 bytes from global to shared memory without waiting; both addresses are multiples of 16.
__device__ inline void copy_async16(void* shared, const void* global) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(global) : "memory");
}
/// The same if the bytes are there, else zeros; then the address does not matter.
__device__ inline void copy_async16_or_zeros(void* shared, const void* global, bool there) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global),
               "r"(there ? 16 : 0)
               : "memory");
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

}  // namespace medusa

#endif  // MEDUSA_EMULATED_CUDA

namespace medusa {

/// How a kernel begins that can do nothing before others have ended.
__device__ inline void begin_kernel() {
  let_next_kernel_begin();
  wait_for_previous_kernel();
}

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
