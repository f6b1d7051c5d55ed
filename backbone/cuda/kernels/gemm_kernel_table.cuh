// The GEMM kernels as a table: included by gemm_kernels.cu and, emulated, by tests.
#pragma once

#include "backbone/cuda/kernels/gemm_rows.cuh"
#include "backbone/cuda/kernels/int8_reader.cuh"
#include "backbone/cuda/kernels/nibbles4_reader.cuh"
#include "backbone/cuda/kernels/skinny_gemm.cuh"
#include "backbone/cuda/kernels/tiled_gemm_launch.cuh"

namespace medusa {
namespace {

template <typename Gemm>
void launch_gemm(const SkinnyGemmArgs& args, DeviceStream stream) {
  const int64_t blocks = (args.weight.num_outputs + Gemm::kBlockOutputs - 1) / Gemm::kBlockOutputs;
  launch(skinny_gemm<Gemm>, dim3(static_cast<unsigned>(blocks)), kGemmThreads, Gemm::kSharedBytes,
         stream, args);
}

constexpr int64_t kMostSkinnyRows = 64;

/// Few rows: as many blocks as there are, and most of the registers for what is on its way from
/// memory. Many: more outputs to a block, so that x is read less often. More than
/// kMostSkinnyRows run in pieces.
template <typename Reader>
void launch_for_rows(const SkinnyGemmArgs& args, DeviceStream stream) {
  if (args.num_rows > kMostSkinnyRows) {
    SkinnyGemmArgs first = args, others = args;
    first.num_rows = kMostSkinnyRows;
    launch_for_rows<Reader>(first, stream);
    skip_rows(others, kMostSkinnyRows);
    launch_for_rows<Reader>(others, stream);
  } else if (args.num_rows <= 8)
    launch_gemm<SkinnyGemm<Reader, 1, 1, 5, 3>>(args, stream);
  else if (args.num_rows <= 16)
    launch_gemm<SkinnyGemm<Reader, 2, 1, 5, 2>>(args, stream);
  else if (args.num_rows <= 32)
    launch_gemm<SkinnyGemm<Reader, 4, 2, 3, 2>>(args, stream);
  else
    launch_gemm<SkinnyGemm<Reader, 8, 2, 3, 1>>(args, stream);
}

void launch_skinny(const SkinnyGemmArgs& args, DeviceStream stream) {
  if (args.num_rows == 0) return;
  switch (args.weight.format) {
    case DeviceFormat::Bf16:
      return launch_tiled(args, stream);
    case DeviceFormat::Int8:
      if (args.weight.mins != nullptr) return launch_for_rows<Int8Reader<true>>(args, stream);
      return launch_for_rows<Int8Reader<false>>(args, stream);
    case DeviceFormat::Nibbles4:
      return launch_for_rows<Nibbles4Reader>(args, stream);
  }
}

int64_t no_scratch(const DeviceWeight&) { return 0; }

/// What belongs together meets where a block has both: gates and ups, the halves of a head.
bool can_end(const SkinnyGemmArgs& args) {
  const bool is_tiled = args.weight.format == DeviceFormat::Bf16;
  switch (args.end) {
    case GemmEnd::Store:
    case GemmEnd::Add:
      return true;
    case GemmEnd::SiluMul:
      return is_tiled && args.weight.num_outputs % 2 == 0;
    case GemmEnd::RopeAndCache:
      return is_tiled && can_place_heads(args.place);
  }
  return false;
}

bool folds_norm(const DeviceWeight& weight) {
  return weight.format == DeviceFormat::Bf16 && weight.num_outputs % 4 == 0;
}

constexpr GemmKernels gemm_kernel_table(const char* name) {
  return {name, no_scratch, launch_skinny, can_end, folds_norm};
}

}  // namespace
}  // namespace medusa
