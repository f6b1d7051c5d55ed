// The product kernels as a table: included by product_kernels.cu and, emulated, by tests.
#pragma once

#include "backbone/cuda/kernels/bf16_reader.cuh"
#include "backbone/cuda/kernels/few_rows_product.cuh"
#include "backbone/cuda/kernels/levels8_reader.cuh"
#include "backbone/cuda/kernels/nibbles4_reader.cuh"

namespace medusa {
namespace {

template <typename Product>
void launch_product(const FewRowsProductArgs& args, DeviceStream stream) {
  const int64_t blocks =
      (args.weight.num_outputs + Product::kBlockOutputs - 1) / Product::kBlockOutputs;
  launch(few_rows_product<Product>, dim3(static_cast<unsigned>(blocks)), kProductThreads,
         Product::kSharedBytes, stream, args);
}

/// Few rows: as many blocks as there are, and most of the registers for what is on its way from
/// memory. Many: more outputs to a block, so that x is read less often.
template <typename Reader>
void launch_for_rows(const FewRowsProductArgs& args, DeviceStream stream) {
  if (args.num_rows <= 8)
    launch_product<FewRowsProduct<Reader, 1, 1, 5, 3>>(args, stream);
  else if (args.num_rows <= 16)
    launch_product<FewRowsProduct<Reader, 2, 1, 5, 2>>(args, stream);
  else if (args.num_rows <= 32)
    launch_product<FewRowsProduct<Reader, 4, 2, 3, 2>>(args, stream);
  else
    launch_product<FewRowsProduct<Reader, 8, 2, 3, Reader::kScaled ? 1 : 2>>(args, stream);
}

void launch_few_rows(const FewRowsProductArgs& args, DeviceStream stream) {
  switch (args.weight.format) {
    case DeviceFormat::Bf16:
      return launch_for_rows<Bf16Reader>(args, stream);
    case DeviceFormat::Levels8:
      if (args.weight.offsets != nullptr) return launch_for_rows<Levels8Reader<true>>(args, stream);
      return launch_for_rows<Levels8Reader<false>>(args, stream);
    case DeviceFormat::Nibbles4:
      return launch_for_rows<Nibbles4Reader>(args, stream);
  }
}

int64_t no_scratch(const DeviceWeight&) { return 0; }

constexpr ProductKernels product_kernel_table(const char* name) {
  return {name, no_scratch, launch_few_rows};
}

}  // namespace
}  // namespace medusa
