#include "infer/draft_models/draft_schedule.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace medusa {
namespace {

constexpr size_t kFewestSamples = 6;  // before the threshold moves
constexpr size_t kMostSamples = 512;  // the oldest are forgotten: a step's work stays bounded
constexpr int32_t kLongest = 62;      // with the root still below the largest tree

}  // namespace

double best_threshold(std::span<const double> probabilities, const std::vector<bool>& right) {
  MEDUSA_ASSERT(probabilities.size() == right.size() && !right.empty(), right.size());
  std::vector<size_t> order(right.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
  const auto num_right = static_cast<double>(std::count(right.begin(), right.end(), true));
  const double num_wrong = static_cast<double>(right.size()) - num_right;
  MEDUSA_ASSERT(num_right > 0 && num_wrong > 0, num_right, num_wrong);

  // Lowering the threshold past each probability lets its tokens run.
  double run_right = 0, run_wrong = 0, best_cost = 3,
         best = 1;  // nothing runs: all right ones lost
  for (size_t i = 0; i < order.size(); ++i) {
    (right[order[i]] ? run_right : run_wrong) += 1;
    const double here = probabilities[order[i]];
    if (i + 1 < order.size() && probabilities[order[i + 1]] == here) continue;
    const double cost = run_wrong / num_wrong + 3 * (1 - run_right / num_right);
    if (cost < best_cost - 1e-12) {  // of equal ones the higher, which drafts less
      best_cost = cost;
      best = here;
    }
  }
  return best;
}

void DraftSchedule::observe(std::span<const double> probabilities, size_t accepted) {
  if (probabilities.empty()) return;
  switch (config_.kind) {
    case DraftScheduleKind::Constant:
      break;
    case DraftScheduleKind::Heuristic:
    case DraftScheduleKind::HeuristicTransient:
      length_ = accepted == probabilities.size() ? std::min(length_ + 2, kLongest)
                                                 : std::max(length_ - 1, 1);
      break;
    case DraftScheduleKind::Confidence:
      adapt_threshold(probabilities, accepted);
      break;
  }
}

void DraftSchedule::adapt_threshold(std::span<const double> probabilities, size_t accepted) {
  // What comes after the first wrong token was never judged.
  const size_t judged = std::min(accepted + 1, probabilities.size());
  for (size_t i = 0; i < judged; ++i) {
    probabilities_.push_back(probabilities[i]);
    right_.push_back(i < accepted);
  }
  if (right_.size() > kMostSamples) {
    const auto surplus = static_cast<std::ptrdiff_t>(right_.size() - kMostSamples);
    probabilities_.erase(probabilities_.begin(), probabilities_.begin() + surplus);
    right_.erase(right_.begin(), right_.begin() + surplus);
  }
  const auto num_right = static_cast<size_t>(std::count(right_.begin(), right_.end(), true));
  if (right_.size() < kFewestSamples || num_right == 0 || num_right == right_.size()) return;
  threshold_ = best_threshold(probabilities_, right_);
}

}  // namespace medusa
