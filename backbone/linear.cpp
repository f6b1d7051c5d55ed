#include "backbone/linear.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <string_view>

namespace medusa {
namespace {

// Packed products keep their rows' bits up to this many rows (measured with LibTorch 2.11); more
// rows would let oneDNN choose another blocking of the sum.
constexpr int64_t kMaxPackedRows = 16;

at::Tensor pack(const at::Tensor& weight) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_reorder_linear_weight", "")
                             .typed<at::Tensor(const at::Tensor&, std::optional<int64_t>)>();
  return op.call(weight, std::nullopt);
}

at::Tensor multiply_packed(const at::Tensor& x, const at::Tensor& packed) {
  using Signature = at::Tensor(
      const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
      c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                             .typed<Signature>();
  return op.call(x, packed, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(), "");
}

}  // namespace

Linear::Linear(const at::Tensor& weight, Kernels kernels) : weight_(weight) {
  if (kernels == Kernels::Plain || !weight.is_cpu() || weight.scalar_type() != at::kBFloat16)
    return;
  packed_ = pack(weight.contiguous());
  weight_.reset();
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  if (!packed_.defined()) return at::linear(x, weight_).to(at::kFloat);
  std::vector<at::Tensor> parts;
  for (int64_t at = 0; at < x.size(0); at += kMaxPackedRows)
    parts.push_back(
        multiply_packed(x.narrow(0, at, std::min(kMaxPackedRows, x.size(0) - at)), packed_));
  return (parts.size() == 1 ? parts[0] : at::cat(parts)).to(at::kFloat);
}

}  // namespace medusa
