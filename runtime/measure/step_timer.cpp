#include "runtime/measure/step_timer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "infer/drafter.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/prefix_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "runtime/measure/interleave.h"

namespace medusa {

/// Keeps what a step commits for as long as the decoder looks, then forgets it.
class StepTimer::ForgetfulTarget : public TargetModel {
 public:
  explicit ForgetfulTarget(BackboneTarget& target) : target_(target) {}

  int32_t num_free_slots() const override { return target_.num_free_slots(); }
  bool has_room(int64_t /*rows*/) const override { return target_.has_room(target_.max_rows()); }
  using TargetModel::open;
  int32_t open(int64_t /*rows*/) override { return target_.open(); }
  void close(int32_t slot) override { target_.close(slot); }
  /// The decoder counts the tokens that it emits; the rows are the context's, again and again.
  int64_t max_rows() const override { return std::numeric_limits<int32_t>::max(); }
  bool rows_are_independent() const override { return target_.rows_are_independent(); }
  ThreadPool* idle_threads() const override { return target_.idle_threads(); }
  int64_t reuse_prefix(int32_t slot, std::span<const TokenId> tokens) override {
    return target_.reuse_prefix(slot, tokens);
  }
  PassOutput forward(std::span<const SlotTree> trees,
                     std::span<const PromptChunk> chunks) override {
    return target_.forward(trees, chunks);
  }
  void commit(int32_t slot, std::span<const int32_t> nodes) override {
    const int64_t length = target_.cache().length(slot);
    target_.commit(slot, nodes);
    target_.rewind(slot, length);
  }

 private:
  BackboneTarget& target_;
};

/// Proposes what the timer is told to time.
class StepTimer::GivenDrafter : public Drafter {
 public:
  explicit GivenDrafter(const Propose& propose) : propose_(propose) {}
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    return propose_(context);
  }

 private:
  const Propose& propose_;
};

StepTimer::StepTimer(BackboneTarget& target, std::span<const TokenId> context,
                     std::shared_ptr<const AcceptanceRule> rule)
    : target_(std::make_unique<ForgetfulTarget>(target)) {
  MEDUSA_ASSERT(context.size() >= 2);
  if (rule == nullptr) rule = std::make_shared<GreedyRule>();
  decoder_ = std::make_unique<HostDecoder>(
      *target_, std::move(rule), [this] { return std::make_unique<GivenDrafter>(propose_); });
  DecodeRequest request;
  request.prompt.assign(context.begin(), context.end());
  request.limits.max_new_tokens = request.limits.max_nodes = std::numeric_limits<int32_t>::max();
  request.emit = [this](const EmittedToken&) { return ++num_emitted_ > 0; };
  decoder_->submit(std::move(request));
  propose_ = [](const DraftContext& draft) { return root_only(draft.tokens.back()); };
  while (num_emitted_ == 0) step();  // the prompt, and a first step
}

StepTimer::~StepTimer() = default;

/// A sequence that ended would leave nothing to time.
void StepTimer::step() {
  for (const FinishedRequest& each : decoder_->step()) {
    if (each.error) std::rethrow_exception(each.error);
    MEDUSA_ASSERT(false, each.id);
  }
}

StepParts StepTimer::time(const Propose& propose) {
  propose_ = propose;
  const DecodeTimes before = decoder_->times();
  step();
  const DecodeTimes& now = decoder_->times();
  return {1e3 * (now.propose_s - before.propose_s), 1e3 * (now.verify_s - before.verify_s),
          1e3 * (now.accept_s - before.accept_s), 1e3 * (now.commit_s - before.commit_s)};
}

CandidateTree timed_chain(TokenId root, int32_t rows) {
  CandidateTree tree = root_only(root);
  for (int32_t i = 1; i < rows; ++i) {
    tree.tokens.push_back(i);
    tree.parents.push_back(i - 1);
  }
  tree.num_verify = rows;
  return tree;
}

StepTimes time_steps(BackboneTarget& target, HeadsRunner& runner, std::span<const RankPath> paths,
                     std::span<const TokenId> context, std::vector<int32_t> sizes, int64_t repeats,
                     ProgressFunction tell) {
  MEDUSA_ASSERT(!sizes.empty() && static_cast<size_t>(sizes.back()) <= paths.size() + 1);
  std::vector<TreeShape> shapes;
  for (const int32_t n : sizes) {
    ChoiceTree tree;
    if (n > 1) tree = make_choice_tree({paths.begin(), paths.begin() + (n - 1)}, 0, "timed tree");
    shapes.push_back(tree.shape());
  }
  std::vector<std::unique_ptr<Drafter>> drafters;
  for (size_t i = 0; i < sizes.size(); ++i)
    drafters.push_back(
        sizes[i] == 1 ? std::make_unique<NoneDrafter>()
                      : behind_prefix(std::make_unique<MedusaDrafter>(runner, shapes[i]), runner));
  StepTimer timer(target, context);
  const size_t num_trees = sizes.size(), num_things = num_trees + kTimedRows.size();
  std::vector<std::vector<double>> samples(num_things), drafting(num_trees);
  Progress progress(std::move(tell), "time steps", "steps",
                    repeats * static_cast<int64_t>(num_things));
  int64_t done = 0;
  const auto step = [&](size_t i) {
    const StepParts parts = timer.time([&](const DraftContext& draft) {
      return i < num_trees ? drafters[i]->propose(draft, Random(0))
                           : timed_chain(draft.tokens.back(), kTimedRows[i - num_trees]);
    });
    if (i < num_trees) drafting[i].push_back(parts.propose);
    return parts.total();
  };
  interleave(num_things, repeats, step, [&](size_t i, double ms) {
    samples[i].push_back(ms);
    progress.update(++done);
    stop_if_interrupted();
    return true;
  });
  progress.finish();

  StepTimes times{.sizes = std::move(sizes), .step_ms = {}};
  for (size_t i = 0; i < num_trees; ++i) {
    times.step_ms.push_back(undisturbed(std::move(samples[i])));
    times.drafting_ms.push_back(undisturbed(std::move(drafting[i])));
  }
  samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(num_trees));
  times.rows_ms = ascending_rows_ms(std::move(samples));
  return times;
}

std::vector<double> ascending_rows_ms(std::vector<std::vector<double>> samples) {
  MEDUSA_ASSERT(samples.size() == kTimedRows.size(), samples.size());
  std::vector<double> ms;
  double highest = 0;
  for (auto& each : samples) {
    highest = std::max(highest, undisturbed(std::move(each)));
    ms.push_back(highest);
  }
  return interpolate_ms(kTimedRows, ms);
}

std::vector<double> interpolate_ms(std::span<const int32_t> sizes, std::span<const double> ms) {
  std::vector<double> all;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<size_t>(sizes[i]);
    const double from = i == 0 ? ms[0] : ms[i - 1];
    const size_t before = all.size();
    for (size_t n = before + 1; n <= size; ++n)
      all.push_back(from + (ms[i] - from) * static_cast<double>(n - before) /
                               static_cast<double>(size - before));
  }
  return all;
}

}  // namespace medusa
