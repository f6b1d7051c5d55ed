#include "train/head_pass.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "base/check.h"
#include "train/prefix_pass.h"

namespace medusa {

double head_lambda(const SharedTrainConfig& config, int64_t head) {
  return std::pow(config.lambda_decay, static_cast<double>(head));
}

double weighted_loss(const SharedTrainConfig& config, const std::vector<HeadLoss>& heads) {
  double sum = 0;
  for (size_t k = 0; k < heads.size(); ++k)
    sum += head_lambda(config, static_cast<int64_t>(k)) * heads[k].quality().loss;
  return sum;
}

std::vector<int64_t> label_counts(std::span<const Batch> batches) {
  MEDUSA_ASSERT(!batches.empty());
  std::vector<int64_t> counts(static_cast<size_t>(batches[0].num_heads));
  for (const Batch& batch : batches)
    for (int64_t head = 0; head < batch.num_heads; ++head)
      counts[static_cast<size_t>(head)] += batch.labels_of(head).num_with_loss();
  return counts;
}

std::vector<double> head_scales(const SharedTrainConfig& config,
                                std::span<const int64_t> num_labels) {
  std::vector<double> scales;
  for (const int64_t count : num_labels) {
    const double weight = head_lambda(config, std::ssize(scales));
    scales.push_back(count == 0 ? 0 : weight / static_cast<double>(count));
  }
  return scales;
}

HeadPass::HeadPass(const SharedTrainConfig& config, MedusaHeads& heads)
    : config_(config), heads_(heads) {
  for (HeadBlock& block : heads.blocks)
    for (at::Tensor* tensor : {&block.weight, &block.bias, &block.second})
      if (tensor->defined()) tensor->set_requires_grad(true);
  for (at::Tensor& down : heads.downs) down.set_requires_grad(true);
  if (heads.correction) heads.correction->table.set_requires_grad(true);
  if (!heads.prefix) return;
  for (const PrefixPart& part : prefix_parts(*heads.prefix)) part.tensor->set_requires_grad(true);
  rope_ = make_rope_table(heads.prefix->config, heads.prefix->token.device());
}

/// @returns [n, H] what the heads read in place of the backbone's states.
at::Tensor HeadPass::states_of(const Batch& batch) const {
  if (!heads_.prefix) return batch.hidden;
  return prefix_states(*heads_.prefix, rope_, batch.answers, batch.rows);
}

/// @returns [n, H or r] what the head's output multiplies, and behind it, [n, R], what corrects it:
/// the text's token before, which the head before should have drafted.
at::Tensor HeadPass::head_states(int64_t head, const at::Tensor& hidden, const Batch& batch) const {
  at::Tensor states = head_state(heads_, head, hidden, batch.embeddings);
  if (!is_corrected(heads_, head)) return states;
  return at::cat({states, correction_rows(*heads_.correction, batch.labels_of(head - 1).hard,
                                          states.scalar_type())},
                 1);
}

HeadOutputWeight HeadPass::output_of(int64_t head, const HeadOutputWeight& shared,
                                     at::ScalarType dtype) const {
  HeadOutputWeight output = shared;
  if (!heads_.outputs.empty()) output = {heads_.outputs[static_cast<size_t>(head)].to(dtype), {}};
  if (is_corrected(heads_, head)) output.correction = heads_.correction->factor_of(head).to(dtype);
  return output;
}

/// Where the gradients of the head's own weights go: those of the masters.
void HeadPass::open_gradients(int64_t head, HeadOutputWeight& weight) const {
  const auto gradient_of = [](at::Tensor master) {
    if (!master.grad().defined()) master.mutable_grad() = at::zeros_like(master);
    return master.grad();
  };
  if (!heads_.outputs.empty())
    weight.gradient = gradient_of(heads_.outputs[static_cast<size_t>(head)]);
  if (is_corrected(heads_, head))
    weight.correction_gradient = gradient_of(heads_.correction->factor_of(head));
}

void HeadPass::accumulate(const Batch& batch, const HeadOutputWeight& output,
                          std::span<const double> scales, std::vector<HeadLoss>& heads) const {
  heads.resize(scales.size());
  const c10::AutoGradMode grad(true);
  // The layer's graph is walked once, with the sum of what all heads ask for.
  const at::Tensor read = states_of(batch);
  const at::Tensor hidden = heads_.prefix ? read.detach().set_requires_grad(true) : read;
  at::Tensor first_gradient;  // what head 0 alone asks of the layer, where that counts for more
  for (int64_t head = 0; head < heads_.config.num_heads; ++head) {
    const double scale = scales[static_cast<size_t>(head)];
    if (scale == 0) continue;
    HeadOutputWeight weight = output_of(head, output, hidden.scalar_type());
    open_gradients(head, weight);
    const at::Tensor states = head_states(head, hidden, batch);  // [n, H or r, and R]
    const at::Tensor gradient = at::empty_like(states, states.options().requires_grad(false));
    {
      const c10::NoGradGuard no_grad;
      heads[static_cast<size_t>(head)].add(head_loss(states.detach(), weight, batch.labels_of(head),
                                                     scale, config_.chunk_positions, gradient));
    }
    states.backward(gradient);
    if (head == 0 && heads_.prefix && config_.trunk_gradient < 1)
      first_gradient = hidden.grad().clone();
  }
  if (!heads_.prefix || !hidden.grad().defined()) return;
  at::Tensor asked = hidden.grad();
  if (first_gradient.defined())
    asked = first_gradient + config_.trunk_gradient * (asked - first_gradient);
  else
    asked = config_.trunk_gradient * asked;
  read.backward(asked);
}

void HeadPass::measure(const Batch& batch, const HeadOutputWeight& output,
                       std::vector<HeadLoss>& heads) const {
  const c10::NoGradGuard no_grad;
  heads.resize(static_cast<size_t>(heads_.config.num_heads));
  const at::Tensor hidden = states_of(batch);
  for (int64_t head = 0; head < heads_.config.num_heads; ++head) {
    const at::Tensor states = head_states(head, hidden, batch);
    heads[static_cast<size_t>(head)].add(
        head_loss(states, output_of(head, output, hidden.scalar_type()), batch.labels_of(head),
                  /*scale=*/0, config_.chunk_positions, {}));
  }
}

}  // namespace medusa
