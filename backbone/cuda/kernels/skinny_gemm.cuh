// y = x wᵀ for few rows and a weight in blocks: the weight streams through once, sixteen outputs to
// a warp's tensor core product, eight rows of x to its other side.
//
// The eight warps of a block share its outputs and take turns along k, 128 bytes of each output at
// a time; what they have summed up is added in the order of the warps. So each sum's terms and
// their order follow from k and the format alone, and the number of rows only says how many columns
// of a product are used.
#pragma once

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/kernels/weight_reader.cuh"
#include "backbone/cuda/launch.cuh"

namespace medusa {
namespace {

constexpr int kGemmWarps = 8;
constexpr int kGemmThreads = kGemmWarps * kWarp;
constexpr int kTurnChunks = 2;  // of a warp before the next warp's
constexpr int kColumnRows = 8;  // rows of x in one product
constexpr int kMostAdded = 2;   // column tiles whose partial sums stand in shared memory at once

/// The rows' side of a product: of row g of each column tile the lane's eight inputs of a group. It
/// keeps what takes the fewest registers.
struct RowReader {
  const SkinnyGemmArgs& args;
  int first;           // element of row g
  int num_rows_after;  // from row g on

  __device__ RowReader(const SkinnyGemmArgs& gemm, int row_offset) : args(gemm) {
    const int g = static_cast<int>(threadIdx.x % kWarp) / 4;
    num_rows_after = static_cast<int>(args.num_rows) - g;
    first = g * num_inputs() + row_offset;
  }

  __device__ int num_inputs() const { return static_cast<int>(args.weight.num_inputs); }
  __device__ uint4 load(int input, int column) const {
    if (column * kColumnRows >= num_rows_after || input >= num_inputs())
      return make_uint4(0, 0, 0, 0);
    const int at = first + column * kColumnRows * num_inputs() + input;
    return *reinterpret_cast<const uint4*>(args.x.x + at);
  }
};

/// First input of chunk i of this warp.
__device__ inline int first_input(int i, int chunk) {
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int turn = i / kTurnChunks * kGemmWarps + warp;
  return chunk * (turn * kTurnChunks + i % kTurnChunks);
}

/// sums += a · b of a group, in this order for every row.
template <typename Reader>
__device__ void multiply_group(float (&sums)[4], const uint32_t (&a)[2][4], const uint4& row,
                               const GroupScales& scales, const float (&row_sums)[4]) {
  const uint4 words = Reader::order_row(row);
  const uint32_t b[2][2] = {{words.x, words.y}, {words.z, words.w}};
  float part[4] = {};
  for (int step = 0; step < 2; ++step) mma_16x8x16(part, a[step], b[step]);
  for (int i = 0; i < 4; ++i) {
    if constexpr (Reader::kShifted) sums[i] = fmaf(scales.shift[i / 2], row_sums[i], sums[i]);
    sums[i] = fmaf(scales.scale[i / 2], part[i], sums[i]);
  }
}

/// Σ x of a group for each row, where sums of products with the rows stand.
__device__ inline void sum_rows(float (&row_sums)[4], const uint4& row) {
  constexpr uint32_t kOnes = 0x3F803F80U;
  const uint32_t ones[4] = {kOnes, kOnes, kOnes, kOnes};
  const uint32_t b[2][2] = {{row.x, row.y}, {row.z, row.w}};
  for (int step = 0; step < 2; ++step) mma_16x8x16(row_sums, ones, b[step]);
}

/// A chunk of each tile of outputs, as this lane holds it.
template <typename Reader, int kOutputs>
struct Chunk {
  uint4 words[kOutputs][2];
  typename Reader::ScaleWords scales[kOutputs];
};

template <typename Reader, int kColumns, int kOutputs>
__device__ void multiply_chunk(float (&sums)[kOutputs][kColumns][4], Chunk<Reader, kOutputs>& chunk,
                               const RowReader& rows, int input) {
  for (int i = 0; i < kOutputs; ++i) Reader::spread(chunk.words[i]);
  for (int group = 0; group < Reader::kGroups; ++group) {
    uint32_t a[kOutputs][2][4];
    GroupScales scales[kOutputs];
    for (int i = 0; i < kOutputs; ++i) {
      Reader::operand(chunk.words[i], group, a[i]);
      scales[i] = Reader::scales(chunk.scales[i], group);
    }
    for (int column = 0; column < kColumns; ++column) {
      const uint4 row = rows.load(input + group * kGroup, column);
      float row_sums[4] = {};
      if constexpr (Reader::kShifted) sum_rows(row_sums, row);
      for (int i = 0; i < kOutputs; ++i)
        multiply_group<Reader>(sums[i][column], a[i], row, scales[i], row_sums);
    }
  }
}

/// @tparam kColumns  tiles of eight rows: at least R / 8.
/// @tparam kOutputs  tiles of sixteen outputs to a block: they share what is read of x.
/// @tparam kAhead    chunks on their way to shared memory while one is multiplied.
/// @tparam kBlocks   that a processor is to hold at once: bounds the registers.
template <typename Reader, int kColumns, int kOutputs, int kAhead, int kBlocks>
struct SkinnyGemm {
  using Sums = float[kOutputs][kColumns][4];
  static constexpr int kBlocksPerProcessor = kBlocks, kNumColumns = kColumns;
  static constexpr int kBlockOutputs = kOutputs * kTileOutputs;
  static constexpr int kAdded = kColumns < kMostAdded ? kColumns : kMostAdded;
  static constexpr int kAddedRows = kAdded * kColumnRows;
  static constexpr int kStride = kBlockOutputs + 4;  // a warp's lanes write to 32 banks
  static constexpr size_t kAddedBytes = sizeof(float) * kGemmWarps * kAddedRows * kStride;
  static constexpr int kSlots = kAhead + 1;
  static constexpr int kSlotWords = kOutputs * 2 * kGemmThreads;
  static constexpr size_t kSlotBytes = sizeof(uint4) * kSlots * kSlotWords;
  static constexpr size_t kSharedBytes = kSlotBytes > kAddedBytes ? kSlotBytes : kAddedBytes;

  /// Where this thread's 16 bytes of chunk i lie: no other thread reads or writes them, so the
  /// copies need no barrier.
  __device__ static uint4* slot(int i, int tile, int half) {
    return shared_memory<uint4>() + i % kSlots * kSlotWords + (tile * 2 + half) * kGemmThreads +
           threadIdx.x;
  }

  /// What this warp's part of k gives.
  __device__ static void sum_up(Sums& sums, const SkinnyGemmArgs& args) {
    Reader readers[kOutputs];
    for (int i = 0; i < kOutputs; ++i)
      readers[i].begin(args.weight,
                       static_cast<int>(blockIdx.x) * kBlockOutputs + i * kTileOutputs);
    const RowReader rows(args, Reader::row_offset());
    const auto input_of = [](int i) { return first_input(i, Reader::kChunk); };
    const auto exists = [&](int i) { return input_of(i) < rows.num_inputs(); };
    const auto start_copies = [&](int i) {
      if (exists(i))
        for (int tile = 0; tile < kOutputs; ++tile)
          for (int half = 0; half < 2; ++half)
            copy_async16(slot(i, tile, half), readers[tile].words(half, input_of(i)));
      copy_async_commit();
    };

    for (int i = 0; i < kAhead; ++i) start_copies(i);
    Chunk<Reader, kOutputs> chunk;
    for (int tile = 0; tile < kOutputs; ++tile)
      chunk.scales[tile] = readers[tile].scale_words(input_of(0));
    wait_for_previous_kernel();  // it writes x
    for (int i = 0; exists(i); ++i) {
      start_copies(i + kAhead);  // over chunk i - 1, which has been multiplied
      Chunk<Reader, kOutputs> next;
      for (int tile = 0; tile < kOutputs; ++tile)
        next.scales[tile] = readers[tile].scale_words(input_of(i + 1));
      copy_async_wait<kAhead>();
      for (int tile = 0; tile < kOutputs; ++tile)
        for (int half = 0; half < 2; ++half) chunk.words[tile][half] = *slot(i, tile, half);
      multiply_chunk<Reader, kColumns, kOutputs>(sums, chunk, rows, input_of(i));
      for (int tile = 0; tile < kOutputs; ++tile) chunk.scales[tile] = next.scales[tile];
    }
  }

  /// Puts column tiles [first, first + kAdded) where other warps see them: [warp, row, output].
  __device__ static void share(const Sums& sums, int first) {
    const int lane = static_cast<int>(threadIdx.x % kWarp),
              warp = static_cast<int>(threadIdx.x / kWarp);
    const int g = lane / 4, t = lane % 4;
    float* mine = shared_memory<float>() + warp * kAddedRows * kStride;
    for (int column = 0; column < kColumns; ++column) {
      if (column < first || column >= first + kAdded) continue;
      for (int tile = 0; tile < kOutputs; ++tile)
        for (int i = 0; i < 4; ++i) {
          const int row = (column - first) * kColumnRows + 2 * t + i % 2;
          mine[row * kStride + tile * kTileOutputs + g + i / 2 * 8] = sums[tile][column][i];
        }
    }
  }

  /// Adds what the warps have shared and writes it.
  __device__ static void add_up(const SkinnyGemmArgs& args, int first) {
    const float* shared = shared_memory<float>();
    for (int i = static_cast<int>(threadIdx.x); i < kAddedRows * kBlockOutputs; i += kGemmThreads) {
      const int row = i / kBlockOutputs, output = i % kBlockOutputs;
      const int64_t to_row = first * kColumnRows + row;
      const int64_t to_output = int64_t{blockIdx.x} * kBlockOutputs + output;
      if (to_row >= args.num_rows || to_output >= args.weight.num_outputs) continue;
      float sum = 0;
      for (int warp = 0; warp < kGemmWarps; ++warp)
        sum += shared[(warp * kAddedRows + row) * kStride + output];
      float& y = args.y[to_row * args.weight.num_outputs + to_output];
      y = args.end == GemmEnd::Add ? y + sum : sum;
    }
  }
};

template <typename Gemm>
__global__ void __launch_bounds__(kGemmThreads, Gemm::kBlocksPerProcessor)
    skinny_gemm(const SkinnyGemmArgs args) {
  let_next_kernel_begin();
  typename Gemm::Sums sums = {};
  Gemm::sum_up(sums, args);
  for (int first = 0; first < Gemm::kNumColumns; first += Gemm::kAdded) {
    if (first * kColumnRows >= args.num_rows) break;
    sync_block();  // shared memory is free again
    Gemm::share(sums, first);
    sync_block();
    Gemm::add_up(args, first);
  }
}

}  // namespace
}  // namespace medusa
