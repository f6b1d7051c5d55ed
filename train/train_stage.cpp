#include "train/train_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace medusa {
namespace {

constexpr size_t kBeforeHeads = 3;                 // steps, loss, number of heads
constexpr double kMostCount = 9007199254740992.0;  // 2^53

bool is_count(double number) {
  return number >= 0 && number <= kMostCount && std::floor(number) == number;
}

}  // namespace

void StepSums::add(const StepOutcome& outcome) {
  heads.resize(outcome.heads.size());
  for (size_t k = 0; k < heads.size(); ++k) heads[k].add(outcome.heads[k]);
  loss += outcome.loss;
  means.resize(outcome.means.size());
  for (size_t i = 0; i < means.size(); ++i) means[i] += outcome.means[i].second;
  ++steps;
}

std::vector<double> StepSums::numbers() const {
  if (steps == 0) return {};
  std::vector<double> out{static_cast<double>(steps), loss, static_cast<double>(heads.size())};
  for (const HeadLoss& head : heads)
    for (const double number : head.numbers()) out.push_back(number);
  out.insert(out.end(), means.begin(), means.end());
  return out;
}

std::optional<StepSums> StepSums::from_numbers(const std::vector<double>& numbers) {
  StepSums sums;
  if (numbers.empty()) return sums;
  const bool finite = std::all_of(numbers.begin(), numbers.end(),
                                  [](double number) { return std::isfinite(number); });
  if (!finite || numbers.size() < kBeforeHeads || !is_count(numbers[0]) || numbers[0] < 1)
    return std::nullopt;
  const double most_heads =
      std::floor(static_cast<double>(numbers.size() - kBeforeHeads) / HeadLoss::kNumbers);
  if (!is_count(numbers[2]) || numbers[2] > most_heads) return std::nullopt;
  sums.steps = static_cast<int64_t>(numbers[0]);
  sums.loss = numbers[1];
  const double* next = numbers.data() + kBeforeHeads;
  for (auto left = static_cast<int64_t>(numbers[2]); left > 0; --left, next += HeadLoss::kNumbers) {
    if (!std::all_of(next + 1, next + HeadLoss::kNumbers, is_count)) return std::nullopt;
    sums.heads.push_back(HeadLoss::of_numbers(next));
  }
  sums.means.assign(next, numbers.data() + numbers.size());
  return sums;
}

double TrainStage::epochs_before(int64_t step) const {
  return static_cast<double>(epochs_) * static_cast<double>(positions_before(step)) /
         static_cast<double>(positions_before(num_steps()));
}

std::string TrainStage::note(const StepOutcome& outcome) const {
  std::string text = fmt::format("loss {:.3f}  top-1", outcome.loss);
  for (const HeadLoss& head : outcome.heads) text += fmt::format(" {:.3f}", head.quality().top_1);
  return text;
}

}  // namespace medusa
