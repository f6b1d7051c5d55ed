// Attention of the rows of trees: chunks on the tensor cores, then every row's tail.
#pragma once

#include "backbone/cuda/kernels/attention_chunks.cuh"
#include "backbone/cuda/kernels/attention_tail.cuh"

namespace medusa {
namespace {

constexpr int64_t kMostHeadsPerGroup = 16;

bool attention_supports(int64_t head_size, int64_t heads_per_group) {
  return (head_size == 64 || head_size == 96 || head_size == 128) && heads_per_group >= 1 &&
         heads_per_group <= kMostHeadsPerGroup;
}

int32_t attention_tile_rows(int64_t heads_per_group) {
  return static_cast<int32_t>(kTileQueries / heads_per_group);
}

int64_t attention_scratch(int64_t num_rows, int64_t num_heads, int64_t head_size,
                          int64_t max_context) {
  return num_splits(max_context) * num_rows * num_heads * partial_size(head_size);
}

template <int kD>
void attend_heads(const TreeAttentionArgs& args, DeviceStream stream) {
  const auto groups = static_cast<unsigned>(args.cache.num_kv_heads);
  const int64_t splits = num_splits(args.max_context);
  if (splits > 0)
    launch(attend_chunks<kD>,
           dim3(static_cast<unsigned>(args.num_tiles), groups, static_cast<unsigned>(splits)),
           kChunkThreads, 2 * sizeof(StagedChunk<kD>), stream, args);

  // Blocks enough to fill a large GPU, as many queries to a block as that leaves: they share reads.
  constexpr int64_t kBlocks = 512, kMostQueries = 8;
  const int64_t all = args.rows.count * args.num_heads;
  const int64_t shared = all / kBlocks;
  const int64_t each = shared < 1 ? 1 : shared > kMostQueries ? kMostQueries : shared;
  const int64_t blocks = (all / args.cache.num_kv_heads + each - 1) / each;
  launch(attend_tails<kD>, dim3(static_cast<unsigned>(blocks), groups), kTailThreads, 0, stream,
         args, static_cast<int32_t>(each));
}

void attend(const TreeAttentionArgs& args, DeviceStream stream) {
  if (args.rows.count == 0) return;
  switch (args.cache.head_size) {
    case 64:
      return attend_heads<64>(args, stream);
    case 96:
      return attend_heads<96>(args, stream);
    case 128:
      return attend_heads<128>(args, stream);
    default:
      return;  // not supported
  }
}

}  // namespace
}  // namespace medusa
