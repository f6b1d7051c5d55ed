// The kernels of head_kernels.h, each thread one number.
#pragma once

#include "backbone/cuda/kernels/device_math.cuh"
#include "heads/cuda/head_kernels.h"

namespace medusa {
namespace {  // a test program holds the emulated ones of the same names beside these

constexpr int kHeadThreads = 256;

inline dim3 blocks_for(int64_t elements) {
  return dim3(static_cast<unsigned>((elements + kHeadThreads - 1) / kHeadThreads));
}

/// The thread's place among all of the grid.
__device__ inline int64_t grid_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void read_paths_kernel(ReadPathsArgs args) {
  begin_kernel();
  const int64_t h = args.hidden_size, width = (1 + args.num_read) * h, i = grid_thread();
  const int64_t row = i / width, at = i % width;
  if (row >= int64_t{args.num_sequences} * args.num_paths) return;
  const int64_t b = row / args.num_paths, p = row % args.num_paths;
  if (at < h) {
    args.out[i] = args.states[(args.per_path ? row : b) * h + at];
    return;
  }
  const int32_t node = args.paths[p * args.num_read + (at / h - 1)];
  const int64_t token = args.tokens[b * args.num_nodes + node];
  args.out[i] = to_bf16(args.gain * to_float(args.embedding[token * h + at % h]));
}

/// Element i of [M, G, n], and where it stands in [G, M, n].
struct HeadElement {
  int64_t row, head, column;

  __device__ HeadElement(int64_t i, int64_t num_heads, int64_t size)
      : row(i / (num_heads * size)), head(i / size % num_heads), column(i % size) {}
  __device__ int64_t place(int64_t num_rows, int64_t size) const {
    return (head * num_rows + row) * size + column;
  }
};

__global__ void round_rows_kernel(RoundRowsArgs args) {
  begin_kernel();
  const int64_t i = grid_thread();
  if (i >= args.num_rows * args.num_heads * args.size) return;
  const HeadElement e(i, args.num_heads, args.size);
  const float x = args.x[i];
  args.out[e.place(args.num_rows, args.size)] =
      to_bf16(args.bias == nullptr ? x : silu(x + args.bias[e.head * args.size + e.column]));
}

__global__ void add_state_kernel(AddStateArgs args) {
  begin_kernel();
  const int64_t h = args.hidden_size, i = grid_thread();
  if (i >= args.num_rows * args.num_heads * h) return;
  const HeadElement e(i, args.num_heads, h);
  const float y = to_float(args.y[e.row / args.rows_per_y % args.num_y * h + e.column]),
              inner = args.inner[i];
  args.out[e.place(args.num_rows, h)] =
      to_bf16(y + (args.bias == nullptr ? inner : silu(inner + args.bias[e.head * h + e.column])));
}

__global__ void begin_correction_kernel(BeginCorrectionArgs args) {
  begin_kernel();
  const int64_t width = args.rank + args.row_size, i = grid_thread();
  const int64_t row = i / width, at = i % width, b = row / args.num_paths;
  if (b >= args.num_sequences) return;
  if (at >= args.rank) {
    const int64_t output = at - args.rank;
    args.corrected[row * args.row_size + output] = args.logits[b * args.row_size + output];
    return;
  }
  const int32_t token = args.tokens[b * args.num_nodes + args.parents[row % args.num_paths]];
  args.before[row * args.rank + at] = args.table[args.row_of_token[token] * args.rank + at];
}

__global__ void fill_nodes_kernel(FillNodesArgs args) {
  begin_kernel();
  const int64_t i = grid_thread(), count = args.end - args.begin;
  const int64_t b = i / count, node = args.begin + i % count;
  if (b >= args.num_sequences) return;
  int32_t* token = args.tokens + b * args.num_nodes + node;
  if (node == 0) {
    *token = args.roots[b];
    return;
  }
  const int64_t row =
      b * args.sequence_stride + int64_t{args.place_of_node[node]} * args.place_stride;
  *token = args.drafts[row * args.top_k + args.ranks[node]];
}

void read_paths(const ReadPathsArgs& args, DeviceStream stream) {
  const int64_t rows = int64_t{args.num_sequences} * args.num_paths;
  launch(read_paths_kernel, blocks_for(rows * (1 + args.num_read) * args.hidden_size), kHeadThreads,
         0, stream, args);
}
void round_rows(const RoundRowsArgs& args, DeviceStream stream) {
  launch(round_rows_kernel, blocks_for(args.num_rows * args.num_heads * args.size), kHeadThreads, 0,
         stream, args);
}
void add_state(const AddStateArgs& args, DeviceStream stream) {
  launch(add_state_kernel, blocks_for(args.num_rows * args.num_heads * args.hidden_size),
         kHeadThreads, 0, stream, args);
}
void begin_correction(const BeginCorrectionArgs& args, DeviceStream stream) {
  const int64_t rows = int64_t{args.num_sequences} * args.num_paths;
  launch(begin_correction_kernel, blocks_for(rows * (args.rank + args.row_size)), kHeadThreads, 0,
         stream, args);
}
void fill_nodes(const FillNodesArgs& args, DeviceStream stream) {
  const int64_t nodes = int64_t{args.num_sequences} * (args.end - args.begin);
  launch(fill_nodes_kernel, blocks_for(nodes), kHeadThreads, 0, stream, args);
}

HeadKernels head_kernel_table(const char* name) {
  return {name, read_paths, round_rows, add_state, begin_correction, fill_nodes};
}

}  // namespace
}  // namespace medusa
