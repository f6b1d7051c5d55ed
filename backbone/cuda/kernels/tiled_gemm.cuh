// y = x wᵀ for a bfloat16 weight. Blocks share what they read: 128 outputs and all
// rows meet in shared memory, 64 inputs at a time, so that x is read once for 128 outputs.
//
// k is cut into parts by the weight's size alone. A part's terms are summed along k, and the parts
// are added in their order. So a row's sums have the same bits for any number of rows. On GPUs with
// clusters each part has a block of its own, and the blocks of a cluster add up through each
// other's shared memory; elsewhere one block takes the parts in turn.
//
// A stage in shared memory has a line of 128 bytes for each output, then for each row: eight units
// of 16 bytes, unit u of line i at place u ^ i % 8. So the eight lines of a matrix that the tensor
// core reads lie in different banks.
#pragma once

#include "backbone/cuda/gemm_kernels.h"
#include "backbone/cuda/kernels/gemm_rows.cuh"
#include "backbone/cuda/kernels/placed_head.cuh"

namespace medusa {
namespace {

constexpr int kMmaOutputs = 16;  // outputs of a warp in a tensor core product
constexpr int kGroupWarps = 4;
constexpr int kGroupOutputs = kGroupWarps * kMmaOutputs;  // that a warpgroup multiplies at once
constexpr int kBlockOutputs = 2 * kGroupOutputs;
constexpr int kStageInputs = 64;
constexpr int kUnits = kStageInputs / 8;  // of 16 bytes, in a line
constexpr int kTileRows = 8;              // rows of x in one product

/// The outputs of a block. For SiluMul the first half are gates and the second the ups beside them.
struct BlockOutputs {
  int64_t first;       // of the weight's
  int64_t num_left;    // of the weight's outputs, or gates, from there on
  int64_t to_ups = 0;  // outputs between a gate and its up; 0: all lines are outputs in order

  __device__ BlockOutputs(const SkinnyGemmArgs& args, int64_t tile) {
    const bool pairs = args.end == GemmEnd::SiluMul;
    const int64_t all = pairs ? args.weight.num_outputs / 2 : args.weight.num_outputs;
    first = tile * (pairs ? kBlockOutputs / 2 : kBlockOutputs);
    num_left = all - first;
    if (pairs) to_ups = all;
  }

  /// Which output behind the first stands in this line; where there are no more the last one, whose
  /// sums are not kept then.
  __device__ int64_t of_line(int line) const {
    const bool is_up = to_ups != 0 && line >= kBlockOutputs / 2;
    const int64_t place = is_up ? line - kBlockOutputs / 2 : line;
    return (place < num_left ? place : num_left - 1) + (is_up ? to_ups : 0);
  }
};

/// Whether a block's outputs are whole heads, and a head's elements need nothing but each other in
/// pairs.
inline bool can_place_heads(const RopeAndCacheArgs& place) {
  const int64_t size = place.cache.head_size;
  return size % 8 == 0 && kBlockOutputs % size == 0 && place.query_norm == nullptr &&
         place.key_norm == nullptr;
}

/// Lines between two sums that are written together; 0: each is written by itself.
__device__ inline int pair_distance(const SkinnyGemmArgs& args) {
  if (args.end == GemmEnd::SiluMul) return kBlockOutputs / 2;
  return args.end == GemmEnd::RopeAndCache ? static_cast<int>(args.place.cache.head_size / 2) : 0;
}

/// The chunks of kStageInputs inputs that belong to a part.
struct PartRange {
  int begin, end;
};

__device__ inline PartRange part_range(int64_t num_inputs, int part, int num_parts) {
  const int chunks = static_cast<int>((num_inputs + kStageInputs - 1) / kStageInputs);
  return {chunks * part / num_parts, chunks * (part + 1) / num_parts};
}

/// Units from the first of the stages to the one after this one.
template <int kStages, int kStageUnits>
__device__ int next_stage(int stage) {
  return stage == (kStages - 1) * kStageUnits ? 0 : stage + kStageUnits;
}

/// Copies a thread's units of some lines, one chunk after the other.
/// @tparam kCopies      of each chunk.
/// @tparam kLinesApart  they are.
/// @tparam kStages      that chunks go to in turn.
template <int kCopies, int kLinesApart, int kStages, int kStageUnits>
struct Copier {
  const Bf16* from;         // this thread's unit of the next chunk, of line 0
  unsigned lines[kCopies];  // elements from there to the thread's lines
  int inputs_left;          // from this thread's unit on; 0 or fewer: zeros stand there
  int chunks_left;
  uint4* to;      // this thread's first unit of stage 0
  int stage = 0;  // units from there

  /// @param matrix      the first input of line 0.
  /// @param first_line  of the stage's.
  /// @param source_of   source_of(line) says which row of the matrix stands in a line.
  template <typename SourceOf>
  __device__ Copier(const Bf16* matrix, int64_t num_inputs, const PartRange& range, int first_line,
                    SourceOf source_of) {
    const int thread = static_cast<int>(threadIdx.x), unit = thread % kUnits,
              line = thread / kUnits;
    const int64_t at = int64_t{range.begin} * kStageInputs + unit * 8;
    from = matrix + at;
    for (int i = 0; i < kCopies; ++i)
      lines[i] = static_cast<unsigned>(source_of(line + i * kLinesApart) * num_inputs);
    inputs_left = static_cast<int>(num_inputs - at);
    chunks_left = range.end - range.begin;
    to = shared_memory<uint4>() + (first_line + line) * kUnits + (unit ^ (line % kUnits));
  }

  /// Starts the next chunk's copies, if there is one.
  __device__ void start() {
    if (--chunks_left < 0) return;
    for (int i = 0; i < kCopies; ++i)
      copy_async16_or_zeros(to + stage + i * kLinesApart * kUnits, from + lines[i],
                            inputs_left > 0);
    go_on();
  }
  /// Copies it at once: without a place in the line behind copies that were started.
  __device__ void store() {
    if (--chunks_left < 0) return;
    for (int i = 0; i < kCopies; ++i)
      to[stage + i * kLinesApart * kUnits] =
          inputs_left > 0 ? load_word4(from + lines[i]) : make_uint4(0, 0, 0, 0);
    go_on();
  }

 private:
  __device__ void go_on() {
    from += kStageInputs;
    inputs_left -= kStageInputs;
    stage = next_stage<kStages, kStageUnits>(stage);
  }
};

/// @tparam kParts    of k.
/// @tparam kColumns  tiles of eight rows: at least R / 8.
/// @tparam kStages   in shared memory: one is read while the others arrive.
/// @tparam kBlocks   that a processor is to hold at once: bounds the registers.
/// @tparam kGroups   warpgroups of a block.
template <int kParts, int kColumns, int kStages, int kBlocks, int kGroups = 1>
struct TiledGemm {
  static constexpr int kWarpTiles = kBlockOutputs / kGroupOutputs / kGroups;
  using Sums = float[kWarpTiles][kColumns][4];

  static constexpr int kNumParts = kParts, kNumColumns = kColumns, kBlocksPerProcessor = kBlocks;
  static constexpr int kThreads = kGroups * kGroupWarps * kWarp;
  static constexpr int kRows = kColumns * kTileRows;
  static constexpr int kLines = kBlockOutputs + kRows;
  static constexpr int kStageUnits = kLines * kUnits;
  static constexpr int kStride = kBlockOutputs + 4;  // a warp's lanes write to 32 banks
  static constexpr size_t kStageBytes = sizeof(uint4) * kStages * kStageUnits;
  static constexpr size_t kSumBytes = sizeof(float) * kRows * kStride;
  static constexpr size_t kScalesAt = kStageBytes > kSumBytes ? kStageBytes : kSumBytes;
  static constexpr size_t kSharedBytes = kScalesAt + sizeof(float) * kRows;

  static constexpr int kLinesApart = kThreads / kUnits;  // of a thread's copies
  static constexpr int kWeightCopies = kBlockOutputs / kLinesApart;
  static constexpr int kRowCopies = (kRows + kLinesApart - 1) / kLinesApart;

  /// A warp's first output. The tiles behind it are those of the warps beside it.
  __device__ static int warp_line() {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    return warp / kGroupWarps * kWarpTiles * kGroupOutputs + warp % kGroupWarps * kMmaOutputs;
  }

  /// Reads what a warp multiplies. A lane gives the place of one line of each matrix.
  struct Reader {
    const uint4* lines;   // of stage 0: this lane's line of the warp's first outputs
    int output_units[4];  // from there to the places of each 16 inputs
    int row_units[2];     // the same for x, of each 32

    __device__ Reader() {
      const int lane = static_cast<int>(threadIdx.x) % kWarp;
      const int line = lane % 8, matrix = lane / 8;
      lines = shared_memory<uint4>();
      const int first = warp_line() + matrix % 2 * 8 + line;
      for (int i = 0; i < 4; ++i) output_units[i] = first * kUnits + ((2 * i + matrix / 2) ^ line);
      for (int i = 0; i < 2; ++i)
        row_units[i] = (kBlockOutputs + line) * kUnits + ((4 * i + matrix) ^ line);
    }

    /// sums += the products of a stage.
    __device__ void multiply(Sums& sums, int stage) const {
      const uint4* from = lines + stage;
      for (int half = 0; half < 2; ++half) {
        uint32_t a[2][kWarpTiles][4];
        for (int step = 0; step < 2; ++step)
          for (int tile = 0; tile < kWarpTiles; ++tile)
            load_matrices(a[step][tile],
                          from + output_units[2 * half + step] + tile * kGroupOutputs * kUnits);
        for (int column = 0; column < kColumns; ++column) {
          uint32_t b[4];
          load_matrices(b, from + row_units[half] + column * kTileRows * kUnits);
          for (int step = 0; step < 2; ++step)
            for (int tile = 0; tile < kWarpTiles; ++tile)
              mma_16x8x16(sums[tile][column], a[step][tile], {b[2 * step], b[2 * step + 1]});
        }
      }
    }
  };

  // With two warpgroups a processor has one block: its products go on while copies are started.
  static constexpr bool kOverlaps = kGroups > 1;
  static constexpr int kAhead = kStages - (kOverlaps ? 2 : 1);  // chunks that have been started

  /// The same where warpgroups multiply. Of kOverlaps the last products may be under way behind it.
  __device__ static void multiply_in_group(Sums& sums, int stage) {
    const uint4* lines = shared_memory<uint4>() + stage;
    const int group = static_cast<int>(threadIdx.x) / (kGroupWarps * kWarp);
    warpgroup_begin();
    for (int unit = 0; unit < kUnits; unit += 2)
      for (int tile = 0; tile < kWarpTiles; ++tile)
        warpgroup_multiply(sums[tile], lines + (group * kWarpTiles + tile) * kGroupOutputs * kUnits,
                           lines + kBlockOutputs * kUnits, unit);
    warpgroup_commit();
    warpgroup_wait<kOverlaps ? 1 : 0>(sums);
  }

  /// What each row's sums are multiplied by, in shared memory.
  __device__ static float* scales() { return shared_memory<float>() + kScalesAt / sizeof(float); }
  __device__ static void find_scales(const SkinnyGemmArgs& args) {
    const NormedRows& x = args.x;
    const int row = static_cast<int>(threadIdx.x);
    if (row >= kRows) return;
    float scale = 1;
    if (x.squares != nullptr && row < args.num_rows) {
      const float* squares = x.squares + row * x.num_squares;
      float sum = 0;
      for (int64_t i = 0; i < x.num_squares; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(squares + i);
        sum += (four.x + four.y) + (four.z + four.w);
      }
      scale = 1.0F / sqrtf(sum / static_cast<float>(args.weight.num_inputs) + x.epsilon);
    }
    scales()[row] = scale;
  }

  /// sums += a part's products. @param first  whether the kernel before may still write x.
  __device__ static void sum_part(Sums& sums, const SkinnyGemmArgs& args,
                                  const BlockOutputs& outputs, int part, bool first) {
    const int64_t k = args.weight.num_inputs, last_row = args.num_rows - 1;
    const PartRange range = part_range(k, part, kParts);
    Copier<kWeightCopies, kLinesApart, kStages, kStageUnits> weights(
        static_cast<const Bf16*>(args.weight.elements) + outputs.first * k, k, range, 0,
        [&](int line) { return outputs.of_line(line); });
    // Behind the last row stand copies of it, whose sums nobody keeps.
    Copier<kRowCopies, kLinesApart, kStages, kStageUnits> rows(
        args.x.x, k, range, kBlockOutputs,
        [&](int64_t line) { return line < last_row ? line : last_row; });
    if (static_cast<int>(threadIdx.x) / kUnits >= kRows) rows.chunks_left = 0;  // there is no line
    for (int i = 0; i < kAhead; ++i) {
      weights.start();
      copy_async_commit();
    }
    if (first) wait_for_previous_kernel();
    for (int i = 0; i < kAhead; ++i) rows.store();
    if (first) find_scales(args);
    const Reader reader;
    int stage = 0;
    if (multiplies_in_warpgroups()) warpgroup_wait<0>(sums);  // what they were before is there
    for (int chunk = range.begin; chunk < range.end; ++chunk) {
      copy_async_wait<kAhead - 1>();
      if (multiplies_in_warpgroups()) warpgroup_publish();
      sync_block();  // the stage has arrived, and the one that is filled next has been read
      weights.start();
      rows.start();
      copy_async_commit();
      if (multiplies_in_warpgroups())
        multiply_in_group(sums, stage);
      else
        reader.multiply(sums, stage);
      stage = next_stage<kStages, kStageUnits>(stage);
    }
    copy_async_wait<0>();
    if (multiplies_in_warpgroups()) warpgroup_wait<0>(sums);
    sync_block();  // shared memory is free again
  }

  /// Puts this lane's sums where others see them: [row, line].
  __device__ static void share(const Sums& sums) {
    const int thread = static_cast<int>(threadIdx.x);
    const int g = thread % kWarp / 4, t = thread % 4;
    float* mine = shared_memory<float>() + warp_line() + g;
    for (int tile = 0; tile < kWarpTiles; ++tile)
      for (int column = 0; column < kColumns; ++column)
        for (int i = 0; i < 4; ++i) {
          const int row = column * kTileRows + 2 * t + i % 2;
          mine[row * kStride + tile * kGroupOutputs + i / 2 * 8] = sums[tile][column][i];
        }
  }

  /// Four neighboring lines of a row, of all parts, times its scale.
  __device__ static float4 add_parts(const float* mine, int num_parts, float scale) {
    float4 sum = make_float4(0, 0, 0, 0);
    for (int part = 0; part < kParts; ++part) {
      if (part >= num_parts) break;
      const float4 each = *reinterpret_cast<const float4*>(shared_of_rank(mine, part));
      sum.x += each.x;
      sum.y += each.y;
      sum.z += each.z;
      sum.w += each.w;
    }
    return make_float4(sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale);
  }

  /// Adds up what the blocks of the cluster have shared. Blocks and their warps take the rows in
  /// turn.
  /// @param num_parts  that stand in memories of their own.
  __device__ static void end(const SkinnyGemmArgs& args, const BlockOutputs& outputs,
                             int num_parts) {
    const int apart = pair_distance(args);
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int row_lanes = apart != 0 ? kWarp / 2 : kWarp;  // four lines each, or pairs of lines
    const int warp_rows = kWarp / row_lanes, turn = kThreads / kWarp * num_parts;
    int line = lane % row_lanes * 4;
    if (apart != 0) line += line / apart * apart;  // over the second halves before
    for (int i = cluster_rank() + warp * num_parts;; i += turn) {
      const int row = i * warp_rows + lane / row_lanes;
      if (i * warp_rows >= kRows) return;
      if (row >= args.num_rows) continue;
      const float* mine = shared_memory<float>() + row * kStride + line;
      const float scale = scales()[row];
      const float4 sum = add_parts(mine, num_parts, scale);
      if (apart == 0) {
        write(args, outputs, row, line, sum);
        continue;
      }
      const float4 other = add_parts(mine + apart, num_parts, scale);
      if (args.end == GemmEnd::SiluMul)
        write_gated(args, outputs, row, line, sum, other);
      else if (line < outputs.num_left)
        write_head(args.place, row, outputs.first + line, sum, other);
    }
  }

 private:
  __device__ static void write(const SkinnyGemmArgs& args, const BlockOutputs& outputs, int row,
                               int line, const float4& sum) {
    float* y = args.y + row * args.weight.num_outputs + outputs.first + line;
    const bool there = line < outputs.num_left;
    if (args.weight.num_outputs % 4 == 0) {  // then all four exist or none
      float4 out = sum;
      if (there) {
        auto* to = reinterpret_cast<float4*>(y);
        if (args.end == GemmEnd::Add) {
          const float4 before = *to;
          out = make_float4(before.x + sum.x, before.y + sum.y, before.z + sum.z, before.w + sum.w);
        }
        *to = out;
      }
      if (args.behind.weight != nullptr) begin_norm(args, outputs, row, line, there, out);
      return;
    }
    const float each[4] = {sum.x, sum.y, sum.z, sum.w};
    for (int e = 0; e < 4; ++e)
      if (line + e < outputs.num_left) y[e] = args.end == GemmEnd::Add ? y[e] + each[e] : each[e];
  }

  /// What the norm behind needs of a row's outputs in this block. All lanes of a warp call it.
  __device__ static void begin_norm(const SkinnyGemmArgs& args, const BlockOutputs& outputs,
                                    int row, int line, bool there, const float4& y) {
    const NormBehind& norm = args.behind;
    float squares = 0;
    if (there) {
      const float4 w = *reinterpret_cast<const float4*>(norm.weight + outputs.first + line);
      Bf16* to = norm.scaled + row * args.weight.num_outputs + outputs.first + line;
      *reinterpret_cast<uint2*>(to) =
          make_uint2(pack_bf16(y.x * w.x, y.y * w.y), pack_bf16(y.z * w.z, y.w * w.w));
      squares = fmaf(y.x, y.x, fmaf(y.y, y.y, fmaf(y.z, y.z, y.w * y.w)));
    }
    squares = warp_sum(squares);
    if (line == 0) norm.squares[row * norm.num_squares + outputs.first / kBlockOutputs] = squares;
  }

  __device__ static void write_gated(const SkinnyGemmArgs& args, const BlockOutputs& outputs,
                                     int row, int line, const float4& gate, const float4& up) {
    Bf16* out = args.out + row * (args.weight.num_outputs / 2) + outputs.first + line;
    const float gates[4] = {gate.x, gate.y, gate.z, gate.w}, ups[4] = {up.x, up.y, up.z, up.w};
    for (int e = 0; e < 4; ++e)
      if (line + e < outputs.num_left) out[e] = to_bf16(silu(gates[e]) * ups[e]);
  }

  /// @param a  of four outputs of a head's first half, from this one on.
  /// @param b  of those half a head behind.
  __device__ static void write_head(const RopeAndCacheArgs& place, int row, int64_t output,
                                    const float4& a, const float4& b) {
    const int64_t size = place.cache.head_size, half = size / 2, i = output % size;
    const PlacedHead head = placed_head(place, row, output / size);
    const auto put = [&](int64_t at, float2 x, float2 y) {
      place_pairs(head, at, half, with_bias(head, at, x), with_bias(head, at + half, y));
    };
    put(i, make_float2(a.x, a.y), make_float2(b.x, b.y));
    put(i + 2, make_float2(a.z, a.w), make_float2(b.z, b.w));
  }
};

/// A block for a part (neighbors form a cluster) of a tile of outputs.
template <typename Gemm>
__global__ void __launch_bounds__(Gemm::kThreads, Gemm::kBlocksPerProcessor)
    tiled_gemm_cluster(const SkinnyGemmArgs args) {
  let_next_kernel_begin();
  const BlockOutputs outputs(args, blockIdx.x / Gemm::kNumParts);
  typename Gemm::Sums sums = {};
  Gemm::sum_part(sums, args, outputs, cluster_rank(), true);
  Gemm::share(sums);
  sync_cluster();
  Gemm::end(args, outputs, Gemm::kNumParts);
  sync_cluster();  // nobody reads this block's memory any more
}

/// A block for a tile of outputs and one of rows: one part after the other.
template <typename Gemm>
__global__ void __launch_bounds__(Gemm::kThreads) tiled_gemm_block(SkinnyGemmArgs args) {
  let_next_kernel_begin();
  const auto row_tiles = static_cast<unsigned>((args.num_rows + Gemm::kRows - 1) / Gemm::kRows);
  const BlockOutputs outputs(args, blockIdx.x / row_tiles);
  skip_rows(args, int64_t{blockIdx.x % row_tiles} * Gemm::kRows);
  typename Gemm::Sums all = {};
  Gemm::sum_part(all, args, outputs, 0, true);
  for (int part = 1; part < Gemm::kNumParts; ++part) {
    typename Gemm::Sums sums = {};
    Gemm::sum_part(sums, args, outputs, part, false);
    for (int tile = 0; tile < Gemm::kWarpTiles; ++tile)
      for (int column = 0; column < Gemm::kNumColumns; ++column)
        for (int i = 0; i < 4; ++i) all[tile][column][i] += sums[tile][column][i];
  }
  Gemm::share(all);
  sync_block();
  Gemm::end(args, outputs, 1);
}

}  // namespace
}  // namespace medusa
