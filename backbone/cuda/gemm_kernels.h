// GEMMs of a fixed weight on a GPU, made for few rows. Each row's sums have the same terms in the
// same order for any number of rows, so a tree's row has the bits that plain decoding gives it.
#pragma once

#include "backbone/cuda/device_types.h"

namespace medusa {

/// How a weight lies on the device.
enum class DeviceFormat {
  Bf16,      // [n, k] as it is
  Int8,      // [n, k] int8 quants, a half precision scale for each 32 of them
  Nibbles4,  // [n, k / 2] two unsigned quants to a byte (the even one low), scales and mins
};

/// y[row][o] = Σ_i x[row][i] w[o][i], with w = scale * quant + min in blocks.
struct DeviceWeight {
  DeviceFormat format = DeviceFormat::Bf16;
  const void* elements = nullptr;  // Bf16, int8_t, or uint8_t pairs, row-major
  const Half16* scales = nullptr;  // [n, k / 32]; unused for Bf16
  const Half16* mins = nullptr;    // [n, k / 32]; null: 0
  int64_t num_outputs = 0;         // n, any
  int64_t num_inputs = 0;          // k, a multiple of 32
};

/// What is done with a GEMM's sums.
enum class GemmEnd {
  Store,         // y = x wᵀ
  Add,           // y += x wᵀ
  SiluMul,       // out = silu(x gᵀ) * (x uᵀ), rounded; g and u are the halves of w's outputs
  RopeAndCache,  // the sums are queries, keys and values, which go to their places
};

/// The rows that a GEMM reads. With squares they are what an RMSNorm makes of a row but for the
/// division by its size, which the GEMM does to its sums.
struct NormedRows {
  const Bf16* x = nullptr;         // [R, k]
  const float* squares = nullptr;  // [R, num_squares] whose sums are the rows' sums of squares
  int64_t num_squares = 0;         // a multiple of 4
  float epsilon = 0;

  NormedRows() = default;
  NormedRows(const Bf16* rows) : x(rows) {}  // NOLINT(google-explicit-constructor): as they are
};

/// The norm of what Add leaves in y, but for the division: NormedRows of the GEMM behind.
struct NormBehind {
  const float* weight = nullptr;  // [n]; null: there is none
  Bf16* scaled = nullptr;         // [R, n] written: y * weight, rounded
  float* squares = nullptr;       // [R, num_squares] written: one of each of the first n / 128
  int64_t num_squares = 0;
};

struct SkinnyGemmArgs {
  DeviceWeight weight;
  NormedRows x;              // squares: only where GemmKernels::folds_norm() says so
  int64_t num_rows = 0;      // R, any
  float* scratch = nullptr;  // floats as GemmKernels::scratch() said, shared by all GEMMs of
                             // one stream
  GemmEnd end = GemmEnd::Store;
  float* y = nullptr;        // [R, n] written by Store and Add
  Bf16* out = nullptr;       // [R, n / 2] written by SiluMul
  RopeAndCacheArgs place{};  // of RopeAndCache: its rows are those of x
  NormBehind behind{};       // of Add, where folds_norm()
};

struct GemmKernels {
  const char* name;
  /// Floats that a GEMM of this weight needs; 0: none.
  int64_t (*scratch)(const DeviceWeight& weight);
  void (*skinny)(const SkinnyGemmArgs& args, DeviceStream stream);
  /// Whether skinny() can end so; it can always store and add. Reads weight, end and place.
  bool (*can_end)(const SkinnyGemmArgs& args);
  /// Whether a GEMM of this weight does its part of the norms before and behind it.
  bool (*folds_norm)(const DeviceWeight& weight);
};

/// Those of this build; null where it was made without a CUDA compiler.
const GemmKernels* cuda_gemm_kernels();

}  // namespace medusa
