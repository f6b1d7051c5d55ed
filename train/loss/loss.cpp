#include "train/loss/loss.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "train/cuda/device_loss.h"
#include "train/loss/row_loss.h"

namespace medusa {
namespace {

/// Counts a position whose label has this rank.
void count_rank(int64_t rank, HeadLoss& loss) {
  loss.top_1 += rank < 1 ? 1 : 0;
  loss.top_5 += rank < 5 ? 1 : 0;
  loss.top_10 += rank < 10 ? 1 : 0;
}

HeadLoss count_labels(const Labels& labels) {
  HeadLoss loss;
  loss.num_labels = labels.num_with_loss();
  for (const int32_t label : labels.hard) loss.num_scored += label != kNoLabel ? 1 : 0;
  return loss;
}

RowTarget target_of(const Labels& labels, size_t i) {
  static constexpr float kCertain = 1;
  if (!labels.is_soft()) return {labels.hard[i], labels.hard.subspan(i, 1), {&kCertain, 1}};
  const auto m = static_cast<size_t>(labels.soft_size());
  return {labels.hard[i], labels.soft_rows.subspan(i * m, m), labels.soft_probs.subspan(i * m, m)};
}

/// Turns logits into gradients, row by row. T: how the kernel sees an element.
template <typename T>
std::vector<RowLoss> row_losses(const at::Tensor& logits, const Labels& labels, double scale) {
  auto* values = static_cast<T*>(logits.data_ptr());
  const auto size = static_cast<size_t>(logits.size(1));
  std::vector<RowLoss> rows(labels.hard.size());
  at::parallel_for(0, static_cast<int64_t>(rows.size()), 4, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const std::span<T> row(values + i * size, size);
      if (labels.has_loss(i))
        rows[i] = labels.objective == HeadObjective::Acceptance
                      ? acceptance_loss(row, target_of(labels, i), static_cast<float>(scale))
                      : cross_entropy(row, target_of(labels, i), static_cast<float>(scale));
      else if (scale != 0)
        std::fill(row.begin(), row.end(), T{});  // zero in both types
    }
  });
  return rows;
}

HeadLoss sum_of_rows(const std::vector<RowLoss>& rows, const Labels& labels) {
  HeadLoss sum = count_labels(labels);
  for (size_t i = 0; i < rows.size(); ++i) {  // in order: the sum does not depend on the threads
    if (!labels.has_loss(i)) continue;
    sum.loss += rows[i].loss;
    count_rank(rows[i].rank, sum);
  }
  return sum;
}

/// Whether there is a kernel that needs no more memory than the logits.
bool has_row_kernel(const at::Tensor& states) {
  const at::ScalarType dtype = states.scalar_type();
  if (dtype != at::kBFloat16 && dtype != at::kFloat) return false;
  return states.is_cpu() || (states.is_cuda() && cuda_loss_kernels() != nullptr);
}

std::vector<RowLoss> row_losses_anywhere(const at::Tensor& logits, const Labels& labels,
                                         double scale) {
  if (logits.is_cuda()) return device_row_losses(logits, labels, scale, *cuda_loss_kernels());
  if (logits.scalar_type() == at::kFloat) return row_losses<float>(logits, labels, scale);
  return row_losses<uint16_t>(logits, labels, scale);
}

}  // namespace

at::Tensor output_logits(const at::Tensor& states, const HeadOutputWeight& output) {
  if (!output.correction.defined()) return at::linear(states, output.weight);
  const int64_t size = output.weight.size(1), rank = output.correction.size(1);
  at::Tensor logits = at::linear(states.narrow(1, 0, size), output.weight);
  return logits.addmm_(states.narrow(1, size, rank), output.correction.t());
}

void through_output(const at::Tensor& logit_gradient, const at::Tensor& states,
                    const HeadOutputWeight& output, at::Tensor gradient) {
  int64_t column = 0;
  const auto through = [&](const at::Tensor& weight, at::Tensor sum) {
    const int64_t size = weight.size(1);
    gradient.narrow(1, column, size).copy_(at::mm(logit_gradient, weight));
    if (sum.defined()) sum.add_(at::mm(logit_gradient.t(), states.narrow(1, column, size)));
    column += size;
  };
  through(output.weight, output.gradient);
  if (output.correction.defined()) through(output.correction, output.correction_gradient);
}

void HeadLoss::add(const HeadLoss& other) {
  loss += other.loss;
  num_labels += other.num_labels;
  num_scored += other.num_scored;
  top_1 += other.top_1;
  top_5 += other.top_5;
  top_10 += other.top_10;
}

std::array<double, HeadLoss::kNumbers> HeadLoss::numbers() const {
  return {loss,
          static_cast<double>(num_labels),
          static_cast<double>(num_scored),
          static_cast<double>(top_1),
          static_cast<double>(top_5),
          static_cast<double>(top_10)};
}

HeadLoss HeadLoss::of_numbers(const double* numbers) {
  const auto count = [&](int i) { return static_cast<int64_t>(numbers[i]); };
  return {numbers[0], count(1), count(2), count(3), count(4), count(5)};
}

HeadQuality HeadLoss::quality() const {
  const auto share = [&](int64_t hits) {
    return num_scored == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(num_scored);
  };
  return {num_labels == 0 ? 0.0 : loss / static_cast<double>(num_labels), share(top_1),
          share(top_5), share(top_10)};
}

std::vector<HeadQuality> qualities(const std::vector<HeadLoss>& heads) {
  std::vector<HeadQuality> result;
  for (const HeadLoss& head : heads) result.push_back(head.quality());
  return result;
}

HeadLoss head_loss(const at::Tensor& states, const HeadOutputWeight& output, const Labels& labels,
                   double scale, int64_t chunk, at::Tensor gradient) {
  HeadLoss sum;
  for (int64_t begin = 0; begin < states.size(0); begin += chunk) {
    const int64_t n = std::min(chunk, states.size(0) - begin);
    const at::Tensor rows = states.narrow(0, begin, n);
    const Labels row_labels = labels.part(begin, n);
    const at::Tensor into = scale == 0 ? at::Tensor() : gradient.narrow(0, begin, n);
    if (!has_row_kernel(states)) {
      sum.add(reference_head_loss(rows, output, row_labels, scale, into));
      continue;
    }
    const at::Tensor logits = output_logits(rows, output);  // [n, V_t]
    sum.add(sum_of_rows(row_losses_anywhere(logits, row_labels, scale), row_labels));
    if (scale != 0) through_output(logits, rows, output, into);
  }
  return sum;
}

HeadLoss reference_head_loss(const at::Tensor& states, const HeadOutputWeight& output,
                             const Labels& labels, double scale, at::Tensor gradient) {
  const at::ScalarType dtype = states.scalar_type();
  const at::ScalarType exact = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const auto to_tensor = [&](const auto& values, at::ScalarType type) {
    return at::tensor(at::makeArrayRef(values.data(), values.size()), type).to(states.device());
  };
  const at::Tensor label = to_tensor(labels.hard, at::kLong);  // [n]
  const at::Tensor known = label.ge(0);
  const at::Tensor counted = labels.is_soft() ? label.ne(kNoLabel) : known;
  const at::Tensor index = label.clamp_min(0).unsqueeze(1);  // [n, 1]
  const at::Tensor logits = output_logits(states, output).to(exact);
  const at::Tensor log_probs = at::log_softmax(logits, 1);
  at::Tensor target = at::zeros_like(log_probs);  // [n, V_t]
  if (labels.is_soft())
    target.scatter_(1, to_tensor(labels.soft_rows, at::kLong).view({-1, labels.soft_size()}),
                    to_tensor(labels.soft_probs, exact).view({-1, labels.soft_size()}));
  else
    target.scatter_(1, index, 1.0);
  const at::Tensor wanted = logits.gather(1, index);
  const at::Tensor before = at::arange(logits.size(1), label.options()).unsqueeze(0).lt(index);
  const at::Tensor rank =
      logits.gt(wanted).logical_or(logits.eq(wanted).logical_and(before)).sum(1);

  const at::Tensor probs = log_probs.exp();
  at::Tensor losses = -(target * log_probs).sum(1), by_logits = probs - target;  // [n], [n, V_t]
  if (labels.objective == HeadObjective::Acceptance) {
    const at::Tensor alpha = at::minimum(probs, target).sum(1, /*keepdim=*/true);  // [n, 1]
    const at::Tensor below = probs * probs.lt(target);
    losses = -alpha.squeeze(1).log();
    by_logits = (below.sum(1, /*keepdim=*/true) * probs - below) / alpha;
  }
  HeadLoss sum = count_labels(labels);
  sum.loss = losses.masked_select(counted).sum().item<double>();
  const at::Tensor ranks = rank.masked_select(known).to(at::kCPU);
  for (int64_t i = 0; i < ranks.numel(); ++i) count_rank(ranks.const_data_ptr<int64_t>()[i], sum);
  if (scale == 0) return sum;

  const at::Tensor logit_gradient = (by_logits * scale * counted.unsqueeze(1)).to(dtype);
  through_output(logit_gradient, states, output, gradient);
  return sum;
}

}  // namespace medusa
