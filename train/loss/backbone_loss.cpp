#include "train/loss/backbone_loss.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace medusa {
namespace {

/// In float32 at least, whatever the GEMMs compute in.
at::Tensor log_probs(const at::Tensor& states, const at::Tensor& output) {
  const at::Tensor logits = at::linear(states, output);
  return at::log_softmax(logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat),
                         1);  // [m, V]
}

}  // namespace

void Divergence::add(const Divergence& other) {
  kl += other.kl;
  positions += other.positions;
  same += other.same;
}

Divergence divergence(const ModelOutput& was, const at::Tensor& states,
                      const HeadOutputWeight& output, double scale, int64_t chunk,
                      at::Tensor gradient) {
  Divergence sum;
  for (int64_t begin = 0; begin < states.size(0); begin += chunk) {
    const int64_t n = std::min(chunk, states.size(0) - begin);
    const at::Tensor rows = states.narrow(0, begin, n);
    const at::Tensor teacher = log_probs(was.states.narrow(0, begin, n), was.output);
    const at::Tensor student = log_probs(rows, output.weight);
    const at::Tensor probs = teacher.exp();
    sum.kl += (probs * (teacher - student)).sum(at::kDouble).item<double>();
    sum.same += teacher.argmax(1).eq(student.argmax(1)).sum().item<int64_t>();
    if (scale != 0)
      through_output(((student.exp() - probs) * scale).to(states.scalar_type()), rows, output,
                     gradient.narrow(0, begin, n));
  }
  sum.positions = states.size(0);
  return sum;
}

}  // namespace medusa
