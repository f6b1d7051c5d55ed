#include "backbone/rope.h"

#include <ATen/ATen.h>

namespace medusa {

RopeTable make_rope_table(const ModelConfig& config, at::Device device) {
  const int64_t size = config.rotated(), still = (config.head_size - size) / 2;
  // In float32 throughout, as the models were trained: a table in double would differ from theirs.
  const at::Tensor i = at::arange(0, size, 2, at::kFloat);  // [R / 2]
  at::Tensor inverse = 1.0 / at::pow(at::scalar_tensor(config.rope_base, at::kFloat), i / size);
  if (!config.rope_factors.empty()) inverse = inverse / at::tensor(config.rope_factors, at::kFloat);
  const at::Tensor angle =
      at::outer(at::arange(config.context, at::kFloat), inverse);  // [positions, R / 2]
  const auto table = [&](const at::Tensor& rotated, double other) {
    return at::constant_pad_nd(rotated * config.rope_attention, {0, still}, other).to(device);
  };
  return {table(angle.cos(), 1), table(angle.sin(), 0)};
}

at::Tensor apply_rope(const at::Tensor& x, const at::Tensor& positions, const RopeTable& table) {
  const at::Tensor cos = table.cos.index_select(0, positions).unsqueeze(1);  // [N, 1, D / 2]
  const at::Tensor sin = table.sin.index_select(0, positions).unsqueeze(1);
  const auto halves = x.chunk(2, -1);  // [N, heads, D / 2] each
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
}

}  // namespace medusa
