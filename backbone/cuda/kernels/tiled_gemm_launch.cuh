// Which blocks a tiled GEMM has: the parts of k by the weight's size, the rest by the rows.
#pragma once

#include "backbone/cuda/kernels/tiled_gemm.cuh"

namespace medusa {
namespace {

template <typename Gemm>
void launch_tiled_block(const SkinnyGemmArgs& args, unsigned tiles, DeviceStream stream) {
  const auto row_tiles = static_cast<unsigned>((args.num_rows + Gemm::kRows - 1) / Gemm::kRows);
  launch(tiled_gemm_block<Gemm>, dim3(tiles * row_tiles), Gemm::kThreads, Gemm::kSharedBytes,
         stream, args);
}

template <int kParts, int kColumns, int kStages, int kBlocks>
void launch_tiled_columns(const SkinnyGemmArgs& args, unsigned tiles, DeviceStream stream) {
  using Gemm = TiledGemm<kParts, kColumns, kStages, kBlocks>;
  if (has_clusters())
    launch_clusters(tiled_gemm_cluster<Gemm>, kParts, dim3(tiles * kParts), Gemm::kThreads,
                    Gemm::kSharedBytes, stream, args);
  else
    launch_tiled_block<Gemm>(args, tiles, stream);
}

/// Three blocks on a processor of 228 KB do best: their stages arrive while others end. Many rows
/// have outputs enough without the parts beside each other.
template <int kParts>
void launch_tiled_parts(const SkinnyGemmArgs& args, unsigned tiles, DeviceStream stream) {
  if (args.num_rows <= 8)
    launch_tiled_columns<kParts, 1, 4, 3>(args, tiles, stream);
  else if (args.num_rows <= 16)
    launch_tiled_columns<kParts, 2, 4, 3>(args, tiles, stream);
  else if (args.num_rows <= 32)
    launch_tiled_columns<kParts, 4, 3, 3>(args, tiles, stream);
  else if (args.num_rows <= 64)
    launch_tiled_columns<kParts, 8, 3, 3>(args, tiles, stream);
  else if (has_clusters())
    launch_tiled_block<TiledGemm<kParts, 16, 6, 1, 2>>(args, tiles, stream);
  else
    launch_tiled_block<TiledGemm<kParts, 16, 3, 1, 2>>(args, tiles, stream);
}

/// As few parts as give a large GPU's processors work, up to eight: fewer have less to add up at
/// their end, and leave room for the blocks of the kernel behind, whose weights arrive meanwhile.
void launch_tiled(const SkinnyGemmArgs& args, DeviceStream stream) {
  constexpr unsigned kBlocks = 190;
  const auto tiles =
      static_cast<unsigned>((args.weight.num_outputs + kBlockOutputs - 1) / kBlockOutputs);
  if (tiles >= kBlocks)
    launch_tiled_parts<1>(args, tiles, stream);
  else if (2 * tiles >= kBlocks)
    launch_tiled_parts<2>(args, tiles, stream);
  else if (4 * tiles >= kBlocks)
    launch_tiled_parts<4>(args, tiles, stream);
  else
    launch_tiled_parts<8>(args, tiles, stream);
}

}  // namespace
}  // namespace medusa
