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

AdamW::AdamW(std::vector<std::pair<std::string, at::Tensor>> parameters) {
  for (auto& [name, parameter] : parameters) {
    MEDUSA_ASSERT(parameter.scalar_type() == at::kFloat, name);
    names_.push_back(name);
    parameters_.push_back(parameter);
    first_.push_back(at::zeros_like(parameter));
    second_.push_back(at::zeros_like(parameter));
    step_counts_.push_back(at::zeros({}, at::kFloat).to(parameter.device()));
  }
}

double AdamW::step(double learning_rate, double weight_decay, double clip_norm) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters_)
    gradients.push_back(parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter));
  const double norm = norm_of(gradients);
  if (norm > clip_norm)
    for (at::Tensor& gradient : gradients) gradient.mul_(clip_norm / norm);
  ++num_steps_;
  for (at::Tensor& count : step_counts_) count.fill_(num_steps_);
  at::_fused_adamw_(parameters_, gradients, first_, second_, /*max_exp_avg_sqs=*/{}, step_counts_,
                    learning_rate, kBeta1, kBeta2, weight_decay, kEpsilon, /*amsgrad=*/false,
                    /*maximize=*/false);
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
  return norm;
}

std::vector<std::pair<std::string, at::Tensor>> AdamW::moments() const {
  std::vector<std::pair<std::string, at::Tensor>> named;
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
