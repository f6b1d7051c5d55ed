// AdamW on float32 masters, with clipping of the whole gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace medusa {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Parameters that share a learning rate: rate_multiple times that of the step.
struct ParameterGroup {
  NamedTensors parameters;
  double rate_multiple = 1;
};

/// Decoupled weight decay (arXiv:1711.05101) on all parameters alike; beta 0.9 and 0.999, epsilon
/// 1e-8.
///
/// Thread safety: none.
class AdamW {
 public:
  /// @param parameters  float32 leaves, kept; their gradients are read and cleared by step().
  explicit AdamW(NamedTensors parameters) : AdamW({ParameterGroup{std::move(parameters), 1}}) {}
  explicit AdamW(const std::vector<ParameterGroup>& groups);

  /// Scales the gradients so that their common norm is at most clip_norm, then updates.
  /// A parameter without a gradient counts as one with zeros. If the norm is no finite number,
  /// nothing is updated.
  /// @returns  the norm before clipping.
  double step(double learning_rate, double weight_decay, double clip_norm);

  int64_t num_steps() const { return num_steps_; }

  /// All state but the parameters, to save: "first.<name>", "second.<name>".
  NamedTensors moments() const;
  /// Puts saved moments back, in the order of moments().
  void restore(int64_t num_steps, const std::vector<at::Tensor>& moments);

 private:
  /// A group's place in the lists below.
  struct Range {
    size_t begin = 0, end = 0;
    double rate_multiple = 1;
  };
  void update(const Range& range, const std::vector<at::Tensor>& gradients, double learning_rate,
              double weight_decay);

  std::vector<Range> groups_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_, first_, second_, step_counts_;
  int64_t num_steps_ = 0;
};

}  // namespace medusa
