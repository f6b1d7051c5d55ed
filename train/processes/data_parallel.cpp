#include "train/processes/data_parallel.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/fingerprint.h"
#include "train/samples/shuffle_buffer.h"

namespace medusa {

std::vector<int64_t> ShardedSamples::own_of(std::span<const int64_t> pool_positions) const {
  std::vector<int64_t> own;
  for (const int64_t position : pool_positions)
    if (const int64_t at = positions[static_cast<size_t>(position)]; at >= 0) own.push_back(at);
  return own;
}

ShardedSamples sharded_samples(const DatasetReader& dataset, std::span<const int64_t> samples,
                               int64_t rank, int64_t count) {
  ShardedSamples share;
  std::vector<int64_t> load(static_cast<size_t>(count));  // positions of each process
  for (const int64_t sample : samples) {
    const auto least = std::min_element(load.begin(), load.end());
    const int64_t n = std::max<int64_t>(num_positions(dataset, sample), 0);
    const bool own = least - load.begin() == rank;
    for (int64_t i = 0; i < n; ++i) share.positions.push_back(own ? *least + i : -1);
    *least += n;
    if (own) share.samples.push_back(sample);
  }
  return share;
}

void sum_gradients(ProcessGroup* group, const NamedTensors& parameters) {
  if (group == nullptr || parameters.empty()) return;
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> flat;
  for (const auto& [name, parameter] : parameters)
    flat.push_back(parameter.grad().defined()
                       ? parameter.grad().reshape({-1})
                       : at::zeros({parameter.numel()}, parameter.options()));
  const at::Tensor all = at::cat(flat);
  group->all_reduce(all);
  int64_t begin = 0;
  for (const auto& [name, parameter] : parameters) {
    at::Tensor(parameter).mutable_grad() =
        all.narrow(0, begin, parameter.numel()).view(parameter.sizes());
    begin += parameter.numel();
  }
}

void sum_losses(ProcessGroup* group, std::vector<HeadLoss>& heads) {
  if (group == nullptr) return;
  std::vector<double> numbers;
  for (const HeadLoss& head : heads)
    for (const double number : head.numbers()) numbers.push_back(number);
  const at::Tensor all = at::tensor(numbers, at::kDouble);
  group->all_reduce(all);
  const auto* sum = all.const_data_ptr<double>();
  for (HeadLoss& head : heads) {
    head = HeadLoss::of_numbers(sum);
    sum += HeadLoss::kNumbers;
  }
}

void sum_counts(ProcessGroup* group, std::vector<int64_t>& counts) {
  if (group == nullptr) return;
  const at::Tensor all = at::tensor(counts, at::kLong);
  group->all_reduce(all);
  const auto* sum = all.const_data_ptr<int64_t>();
  counts.assign(sum, sum + all.numel());
}

void sum_value(ProcessGroup* group, double& value) {
  if (group == nullptr) return;
  const at::Tensor sum = at::full({1}, value, at::kDouble);
  group->all_reduce(sum);
  value = sum.item<double>();
}

bool is_true_in_any(ProcessGroup* group, bool mine) {
  if (group == nullptr) return mine;
  std::vector<int64_t> count{mine ? 1 : 0};
  sum_counts(group, count);
  return count[0] > 0;
}

int64_t value_of_first(ProcessGroup* group, int64_t mine) {
  if (group == nullptr) return mine;
  const at::Tensor value = at::full({1}, mine, at::kLong);
  group->broadcast(value);
  return value.item<int64_t>();
}

std::string text_of_first(ProcessGroup* group, const std::string& mine) {
  if (group == nullptr) return mine;
  const int64_t size = value_of_first(group, std::ssize(mine));
  const at::Tensor text = at::zeros({size}, at::kChar);
  auto* bytes = text.mutable_data_ptr<int8_t>();
  std::copy_n(mine.begin(), std::min(size, std::ssize(mine)), bytes);
  group->broadcast(text);
  return {bytes, bytes + size};
}

void broadcast_parameters(ProcessGroup* group, const NamedTensors& parameters) {
  if (group == nullptr) return;
  for (const auto& [name, parameter] : parameters) group->broadcast(parameter.detach());
}

void take_state_of_first(ProcessGroup* group, const NamedTensors& parameters, AdamW& optimizer) {
  if (group == nullptr) return;
  broadcast_parameters(group, parameters);
  std::vector<at::Tensor> moments;
  for (const auto& [name, moment] : optimizer.moments()) {
    group->broadcast(moment);
    moments.push_back(moment);
  }
  optimizer.restore(value_of_first(group, optimizer.num_steps()), moments);
}

void check_same_parameters(ProcessGroup* group, const NamedTensors& parameters, int64_t step) {
  if (group == nullptr) return;
  Fingerprint held;
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor bytes = parameter.detach().cpu().contiguous();
    held.add({static_cast<const uint8_t*>(bytes.const_data_ptr()), bytes.nbytes()});
  }
  group->check_same(held.digest(), fmt::format("holds other weights after step {}", step),
                    "run all of them on machines of one kind with as many threads");
}

}  // namespace medusa
