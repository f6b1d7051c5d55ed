#include "train/adamw.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "base/check.h"

namespace medusa {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

/// Of all gradients together.
double norm_of(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients) {
    const double norm = gradient.norm().item<double>();
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

}  // namespace

AdamW::AdamW(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups) {
    const size_t begin = names_.size();
    for (const auto& [name, parameter] : group.parameters) {
      MEDUSA_ASSERT(parameter.scalar_type() == at::kFloat, name);
      names_.push_back(name);
      parameters_.push_back(parameter);
      first_.push_back(at::zeros_like(parameter));
      second_.push_back(at::zeros_like(parameter));
      step_counts_.push_back(at::zeros({}, at::kFloat).to(parameter.device()));
    }
    groups_.push_back({begin, names_.size(), group.rate_multiple});
  }
}

void AdamW::update(const Range& range, const std::vector<at::Tensor>& gradients,
                   double learning_rate, double weight_decay) {
  if (range.begin == range.end) return;
  const auto part = [&](const std::vector<at::Tensor>& all) {
    return at::TensorList(all).slice(range.begin, range.end - range.begin);
  };
  at::_fused_adamw_(part(parameters_), part(gradients), part(first_), part(second_),
                    /*max_exp_avg_sqs=*/{}, part(step_counts_), learning_rate * range.rate_multiple,
                    kBeta1, kBeta2, weight_decay, kEpsilon, /*amsgrad=*/false, /*maximize=*/false);
}

double AdamW::step(double learning_rate, double weight_decay, double clip_norm) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters_)
    gradients.push_back(parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter));
  const double norm = norm_of(gradients);
  if (norm > clip_norm)
    for (at::Tensor& gradient : gradients) gradient.mul_(clip_norm / norm);
  if (std::isfinite(norm)) {
    ++num_steps_;
    for (at::Tensor& count : step_counts_) count.fill_(num_steps_);
    for (const Range& group : groups_) update(group, gradients, learning_rate, weight_decay);
  }
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
  return norm;
}

NamedTensors AdamW::moments() const {
  NamedTensors named;
  for (size_t i = 0; i < names_.size(); ++i) {
    named.emplace_back("first." + names_[i], first_[i]);
    named.emplace_back("second." + names_[i], second_[i]);
  }
  return named;
}

void AdamW::restore(int64_t num_steps, const std::vector<at::Tensor>& moments) {
  MEDUSA_ASSERT(moments.size() == 2 * names_.size(), moments.size());
  for (size_t i = 0; i < names_.size(); ++i) {
    first_[i].copy_(moments[2 * i]);
    second_[i].copy_(moments[2 * i + 1]);
  }
  num_steps_ = num_steps;
}

}  // namespace medusa
