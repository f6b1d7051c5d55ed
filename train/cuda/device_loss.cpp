#include "train/cuda/device_loss.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "backbone/cuda/device_tensors.h"
#include "base/check.h"

namespace medusa {
namespace {

/// Undefined of none.
template <typename T>
at::Tensor on_device(std::span<const T> values, const at::Tensor& like) {
  if (values.empty()) return {};
  return at::tensor(at::makeArrayRef(values.data(), values.size())).to(like.device());
}

std::vector<uint8_t> rows_with_loss(const Labels& labels) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < labels.hard.size(); ++i) out.push_back(labels.has_loss(i) ? 1 : 0);
  return out;
}

}  // namespace

std::vector<RowLoss> device_row_losses(const at::Tensor& logits, const Labels& labels, double scale,
                                       const LossKernels& kernels) {
  const int64_t n = logits.size(0);
  if (n == 0) return {};
  MEDUSA_ASSERT(logits.is_contiguous() && labels.soft_size() <= static_cast<int64_t>(kMaxTargets),
                labels.soft_size());
  const KernelDeviceGuard guard(logits.device());
  const std::vector<uint8_t> counted = rows_with_loss(labels);
  const at::Tensor hard = on_device(labels.hard, logits),
                   rows = on_device(labels.soft_rows, logits),
                   probs = on_device(labels.soft_probs, logits),
                   has_loss = on_device(std::span<const uint8_t>(counted), logits);
  const at::Tensor losses = at::empty({n}, logits.options().dtype(at::kFloat)),
                   ranks = at::empty({n}, logits.options().dtype(at::kInt));
  RowLossArgs args;
  if (logits.scalar_type() == at::kBFloat16)
    args.halves = elements<Bf16>(logits);
  else
    args.floats = logits.data_ptr<float>();
  args.num_rows = n;
  args.row_size = logits.size(1);
  args.labels = elements<const int32_t>(hard);
  args.has_loss = elements<const uint8_t>(has_loss);
  args.target_rows = elements<const int32_t>(labels.is_soft() ? rows : hard);
  args.target_probs = elements<const float>(probs);
  args.num_targets = labels.is_soft() ? static_cast<int32_t>(labels.soft_size()) : 1;
  args.acceptance = labels.objective == HeadObjective::Acceptance;
  args.scale = static_cast<float>(scale);
  args.losses = elements<float>(losses);
  args.ranks = elements<int32_t>(ranks);
  kernels.row_loss(args, nullptr);
  const at::Tensor all_losses = losses.cpu(), all_ranks = ranks.cpu();
  std::vector<RowLoss> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back({all_losses.const_data_ptr<float>()[i], all_ranks.const_data_ptr<int32_t>()[i]});
  return out;
}

}  // namespace medusa
