#include "infer/logits/target_logits.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "infer/row_math.h"

namespace medusa {

ProcessedRows::ProcessedRows(std::span<const LogitsProcessorFactory> factories,
                             std::span<const TokenId> prompt) {
  for (const LogitsProcessorFactory& make : factories) {
    processors_.push_back(make());
    processors_.back()->begin(prompt);
  }
}

void ProcessedRows::take(TokenId token) {
  for (const auto& each : processors_) each->take(token);
}

std::span<const float> ProcessedRows::row(const CandidateTree& tree, int32_t node,
                                          std::span<const float> raw) {
  const auto known = std::find(nodes_.begin(), nodes_.end(), node);
  if (known != nodes_.end()) return rows_[static_cast<size_t>(known - nodes_.begin())];
  path_.clear();
  for (int32_t at = node; at > 0; at = tree.parents[static_cast<size_t>(at)])
    path_.push_back(tree.tokens[static_cast<size_t>(at)]);
  std::reverse(path_.begin(), path_.end());

  if (rows_.size() == nodes_.size()) rows_.emplace_back();
  std::vector<float>& row = rows_[nodes_.size()];
  row.assign(raw.begin(), raw.end());
  for (const auto& each : processors_) each->process(path_, row);
  const bool has_numbers = !std::isnan(row[0]);  // else the model is damaged, as the rule will tell
  if (has_numbers && row_peak(row).value == -std::numeric_limits<float>::infinity())
    throw UserError(
        "the request leaves no token that may follow, expected at least one; allow more tokens, or "
        "lower min_tokens");
  nodes_.push_back(node);
  return row;
}

TargetLogits::TargetLogits(const at::Tensor& logits)
    : stride_(logits.stride(0)), row_size_(logits.size(1)) {
  MEDUSA_ASSERT(logits.scalar_type() == at::kFloat && logits.stride(1) == 1);
  if (logits.is_cpu())
    data_ = static_cast<const float*>(logits.const_data_ptr());
  else
    on_device_ = logits;
}

const float* TargetLogits::fetched(int32_t node) const {
  at::Tensor& row = fetched_[node];
  if (!row.defined()) row = on_device_[node].cpu();
  return static_cast<const float*>(row.const_data_ptr());
}

TargetLogits::TargetLogits(const at::Tensor& logits, const CandidateTree& tree,
                           ProcessedRows* processed, ThreadPool* threads)
    : TargetLogits(logits) {
  threads_ = threads;
  if (processed == nullptr || !processed->has_processors()) return;
  tree_ = &tree;
  processed_ = processed;
  processed_->begin_tree();
}

}  // namespace medusa
