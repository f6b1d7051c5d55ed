// A fixed weight that rows are multiplied by on a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "backbone/cuda/device_weight.h"
#include "backbone/cuda/gemm_kernels.h"

namespace medusa {

/// Rows keep their bits beside any others.
///
/// Thread safety: none where GEMMs share scratch.
class DeviceGemm {
 public:
  DeviceGemm() = default;
  /// @param kernels  not owned.
  DeviceGemm(const GemmKernels& kernels, StoredDeviceWeight weight);

  int64_t num_outputs() const { return weight_.num_outputs(); }
  int64_t num_inputs() const { return weight_.num_inputs; }
  bool defined() const { return kernels_ != nullptr; }
  int64_t bytes() const;  // of the weight
  /// Floats that a call needs besides its output.
  int64_t scratch() const;

  /// y = x wᵀ. Allocates nothing and does not wait for the device.
  /// @param x        [M, k] bfloat16, on the weight's device.
  /// @param scratch  at least scratch() floats there; shared by the GEMMs of one stream.
  /// @param y        [M, n] float32 there, written.
  void operator()(const at::Tensor& x, float* scratch, const at::Tensor& y,
                  DeviceStream stream) const;
  /// The same with plain pointers, for buffers that are parts of others: multiples of 16 bytes.
  void operator()(const NormedRows& x, int64_t num_rows, float* scratch, float* y,
                  DeviceStream stream) const;
  /// y += x wᵀ. @param behind  of the norm behind it, where folds_norm().
  void add(const NormedRows& x, int64_t num_rows, float* scratch, float* y, DeviceStream stream,
           const NormBehind& behind = {}) const;
  /// Whether this GEMM does its part of the norms before and behind it: x may have squares.
  bool folds_norm() const { return kernels_->folds_norm(weight_.view()); }

  /// Whether rope_and_cache() works for this weight and such heads.
  bool has_rope_and_cache(const RopeAndCacheArgs& place) const;
  /// The sums are queries, keys and values: what LayerKernels::rope_and_cache() does to them, with
  /// the same bits.
  /// @param place  of as many rows as x; reads no sums of memory.
  void rope_and_cache(const NormedRows& x, int64_t num_rows, float* scratch,
                      const RopeAndCacheArgs& place, DeviceStream stream) const;

  /// Whether silu_mul() works for this weight.
  bool has_silu_mul() const;
  /// out = silu(x gᵀ) * (x uᵀ), rounded; g and u are the halves of the weight's outputs.
  void silu_mul(const NormedRows& x, int64_t num_rows, float* scratch, Bf16* out,
                DeviceStream stream) const;

 private:
  void run(SkinnyGemmArgs args, int64_t num_rows, float* scratch, DeviceStream stream) const;

  const GemmKernels* kernels_ = nullptr;
  StoredDeviceWeight weight_;
};

}  // namespace medusa
