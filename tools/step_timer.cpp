#include "tools/step_timer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/progress.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/none_drafter.h"
#include "infer/drafters/prefix_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "tools/bench/statistics.h"
#include "tools/turns.h"

namespace medusa {

StepParts time_step(BackboneTarget& target, int32_t slot,
                    const std::function<CandidateTree()>& propose) {
  const int64_t length = target.cache().length(slot);
  auto last = std::chrono::steady_clock::now();
  const auto lap_ms = [&last] {
    const auto from = std::exchange(last, std::chrono::steady_clock::now());
    return std::chrono::duration<double, std::milli>(last - from).count();
  };
  StepParts parts;
  const CandidateTree tree = propose();
  parts.propose = lap_ms();
  const SlotTree slot_tree{slot, &tree};
  const TargetOutput output = target.forward({&slot_tree, 1}).front();
  parts.verify = lap_ms();
  const Acceptance accepted = GreedyRule().accept(tree, output.logits, length, Random(0));
  parts.accept = lap_ms();
  std::vector<int32_t> keep{0};
  keep.insert(keep.end(), accepted.path.begin(), accepted.path.end());
  target.commit(slot, keep);
  const at::Tensor hidden = output.hidden[keep.back()].clone();
  parts.commit = lap_ms();
  target.rewind(slot, length);
  return parts;
}

StepTimes time_steps(BackboneTarget& target, HeadGuesser& guesser, std::span<const RankPath> paths,
                     std::span<const TokenId> context, std::vector<int32_t> sizes,
                     int64_t repeats) {
  MEDUSA_ASSERT(context.size() >= 2 && !sizes.empty() &&
                static_cast<size_t>(sizes.back()) <= paths.size() + 1);
  std::vector<TreeShape> shapes;
  for (const int32_t n : sizes) {
    ChoiceTree tree;
    if (n > 1) tree = make_choice_tree({paths.begin(), paths.begin() + (n - 1)}, 0, "timed tree");
    shapes.push_back(tree.shape());
  }
  std::vector<std::unique_ptr<Drafter>> drafters;
  for (size_t i = 0; i < sizes.size(); ++i)
    drafters.push_back(
        sizes[i] == 1
            ? std::make_unique<NoneDrafter>()
            : behind_prefix(std::make_unique<MedusaDrafter>(guesser, shapes[i]), guesser));
  const int32_t slot = target.open();
  const at::Tensor hidden = target.prefill(slot, context.first(context.size() - 1));
  std::vector<std::vector<double>> samples(sizes.size());
  Progress progress("time steps", "steps", repeats * static_cast<int64_t>(sizes.size()));
  int64_t done = 0;
  const auto step = [&](size_t i) {
    const DraftContext draft{context, hidden, static_cast<int32_t>(guesser.num_heads()), sizes[i]};
    return time_step(target, slot, [&] { return drafters[i]->propose(draft, Random(0)); }).total();
  };
  take_turns(sizes.size(), repeats, step, [&](size_t i, double ms) {
    samples[i].push_back(ms);
    progress.update(++done);
    return true;
  });
  progress.finish();
  target.close(slot);

  StepTimes times{std::move(sizes), {}};
  for (auto& each : samples) times.medians_ms.push_back(median(std::move(each)));
  return times;
}

std::vector<double> interpolate_ms(const StepTimes& times) {
  std::vector<double> all;
  for (size_t i = 0; i < times.sizes.size(); ++i) {
    const auto size = static_cast<size_t>(times.sizes[i]);
    const double from = i == 0 ? times.medians_ms[0] : times.medians_ms[i - 1];
    const size_t before = all.size();
    for (size_t n = before + 1; n <= size; ++n)
      all.push_back(from + (times.medians_ms[i] - from) * static_cast<double>(n - before) /
                               static_cast<double>(size - before));
  }
  return all;
}

}  // namespace medusa
