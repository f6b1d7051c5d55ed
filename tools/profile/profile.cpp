#include "tools/profile/profile.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/stderr_progress.h"
#include "infer/backbone_target.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/drafters/prefix_drafter.h"
#include "runtime/measure/interleave.h"
#include "runtime/measure/step_timer.h"
#include "runtime/model.h"

namespace medusa {
namespace {

/// Milliseconds of one step: its own parts and those of the pass.
struct StepSample {
  StepParts step;
  std::array<double, kNumForwardStages> pass{};
};

/// Which tokens are in a text does not change what they cost.
std::vector<TokenId> any_text(int64_t length, int64_t vocab_size) {
  std::vector<TokenId> text;
  for (int64_t i = 0; i < length; ++i) text.push_back(static_cast<TokenId>(7919 * i % vocab_size));
  return text;
}

TreeShape low_rank_shape(const HeadsRunner& runner, int32_t nodes) {
  const auto heads = static_cast<int32_t>(runner.num_heads());
  const auto top_k = static_cast<int32_t>(runner.top_k());
  std::vector<RankPath> paths = low_rank_paths(heads, top_k, static_cast<size_t>(nodes) - 1);
  MEDUSA_ASSERT(std::ssize(paths) == nodes - 1, paths.size(), nodes);
  return make_choice_tree(std::move(paths), top_k, "timed tree").shape();
}

/// The half in the middle, by the time of the step.
StepSample typical(std::vector<StepSample> samples) {
  std::sort(samples.begin(), samples.end(), [](const StepSample& a, const StepSample& b) {
    return a.step.total() < b.step.total();
  });
  const size_t quarter = samples.size() / 4;
  const std::span<const StepSample> kept(samples.data() + quarter, samples.size() - 2 * quarter);
  StepSample mean;
  const double weight = 1 / static_cast<double>(kept.size());
  for (const StepSample& each : kept) {
    mean.step.propose += weight * each.step.propose;
    mean.step.verify += weight * each.step.verify;
    mean.step.accept += weight * each.step.accept;
    mean.step.commit += weight * each.step.commit;
    for (size_t i = 0; i < mean.pass.size(); ++i) mean.pass[i] += weight * each.pass[i];
  }
  return mean;
}

/// The parts of a pass under their names; what was computed within another part is named with it.
void add_forward_stages(const std::array<double, kNumForwardStages>& ms,
                        const std::array<StageWork, kNumForwardStages>& work,
                        std::vector<ProfiledPart>& parts) {
  const auto add = [&](const char* name, std::initializer_list<ForwardStage> each) {
    ProfiledPart sum{name, 0, {}};
    for (const ForwardStage part : each) {
      const auto i = static_cast<size_t>(part);
      sum.ms += ms[i];
      sum.work.bytes += work[i].bytes;
      sum.work.flops += work[i].flops;
    }
    parts.push_back(std::move(sum));
  };
  const bool fused = ms[static_cast<size_t>(ForwardStage::Rope)] == 0;
  using enum ForwardStage;
  add("embedding", {Embedding});
  add("attention norm", {AttentionNorm});
  if (fused) {
    add("QKV, rope, cache write", {Qkv, Rope, CacheWrite});
  } else {
    add("QKV", {Qkv});
    add("rope", {Rope});
    add("cache write", {CacheWrite});
  }
  add("attention", {Attention});
  add("output", {Output});
  add("MLP norm", {MlpNorm});
  if (fused) {
    add("gate, up, activation", {GateUp, Activation});
  } else {
    add("gate, up", {GateUp});
    add("activation", {Activation});
  }
  add("down", {Down});
  add("final norm", {FinalNorm});
  add("LM head", {LmHead});
}

/// Times steps of all sizes behind one context.
class ContextProfiler {
 public:
  ContextProfiler(Llama& llama, int64_t context, std::span<const int32_t> rows, HeadsRunner* runner,
                  std::shared_ptr<const AcceptanceRule> rule)
      : llama_(llama),
        target_(llama, 1, context + rows.back()),
        timer_(target_, any_text(context + 1, llama.config().vocab_size), std::move(rule)),
        runner_(runner),
        stage_timer_(device_wait(llama.device())) {
    if (runner_ != nullptr)
      for (const int32_t n : rows) {
        const TreeShape& shape = shapes_.emplace(n, low_rank_shape(*runner_, n)).first->second;
        drafters_.emplace(
            n, behind_prefix(std::make_unique<MedusaDrafter>(*runner_, shape), *runner_));
      }
    llama_.set_timer(&stage_timer_);
  }
  ~ContextProfiler() { llama_.set_timer(nullptr); }
  ContextProfiler(const ContextProfiler&) = delete;
  ContextProfiler& operator=(const ContextProfiler&) = delete;

  StepSample step(int32_t rows) {
    stage_timer_.reset();
    StepSample sample;
    sample.step = step_of(rows);
    std::transform(stage_timer_.seconds().begin(), stage_timer_.seconds().end(),
                   sample.pass.begin(), [](double seconds) { return 1000 * seconds; });
    return sample;
  }

  /// Of one more step: counting takes time, so no step is timed and counted.
  Launches count_launches(int32_t rows) {
    const LaunchCounter launches;
    step_of(rows);
    return launches.count();
  }

 private:
  StepParts step_of(int32_t rows) {
    return timer_.time([&](const DraftContext& draft) {
      if (runner_ == nullptr || rows == 1) return timed_chain(draft.tokens.back(), rows);
      return drafters_.at(rows)->propose(draft, Random(0));
    });
  }

  Llama& llama_;
  BackboneTarget target_;
  StepTimer timer_;
  HeadsRunner* runner_;
  StageTimer stage_timer_;
  std::map<int32_t, TreeShape> shapes_;  // by rows
  std::map<int32_t, std::unique_ptr<Drafter>> drafters_;
};

ProfiledStep profiled_step(const Llama& llama, int64_t context, int32_t rows, bool drafted,
                           const StepSample& sample) {
  ProfiledStep out{context, rows, {}, {}};
  if (drafted) out.parts.push_back({"drafting", sample.step.propose, {}});
  const auto element_bytes = static_cast<double>(c10::elementSize(llama.dtype()));
  add_forward_stages(sample.pass,
                     pass_work(llama.config(), llama.weight_bytes(), element_bytes, rows, context),
                     out.parts);
  out.parts.push_back({"acceptance", sample.step.accept, {}});
  out.parts.push_back({"commit", sample.step.commit, {}});
  const double pass = std::accumulate(sample.pass.begin(), sample.pass.end(), 0.0);
  out.parts.push_back({"host", std::max(0.0, sample.step.verify - pass), {}});
  return out;
}

}  // namespace

std::vector<RankPath> low_rank_paths(int32_t num_heads, int32_t top_k, size_t count) {
  const auto sum = [](const RankPath& path) {
    return std::accumulate(path.begin(), path.end(), static_cast<int32_t>(path.size()));
  };
  const auto later = [&](const RankPath& a, const RankPath& b) {
    return sum(a) != sum(b) ? sum(a) > sum(b) : comes_before(b, a);
  };
  // A path is followed by its next sibling and its first child: each path comes up once.
  std::priority_queue<RankPath, std::vector<RankPath>, decltype(later)> next(later);
  next.push({0});
  std::vector<RankPath> out;
  while (out.size() < count && !next.empty()) {
    const RankPath path = next.top();
    next.pop();
    out.push_back(path);
    RankPath sibling = path, child = path;
    if (++sibling.back() < top_k) next.push(std::move(sibling));
    child.push_back(0);
    if (std::ssize(child) <= num_heads) next.push(std::move(child));
  }
  return out;
}

Profile profile_steps(Llama& llama, const ProfilePlan& plan, HeadsRunner* runner,
                      const std::shared_ptr<const AcceptanceRule>& rule) {
  MEDUSA_ASSERT(!plan.rows.empty() && plan.rows.front() >= 1 && plan.repeats >= 1);
  Profile profile{.machine = machine_text(llama),
                  .backbone = llama.weights().fingerprint,
                  .repeats = plan.repeats,
                  .drafted = runner != nullptr,
                  .roofline = {},
                  .steps = {}};
  const auto sizes = std::ssize(plan.rows);
  Progress progress(stderr_progress(), "time steps", "steps",
                    plan.repeats * sizes * std::ssize(plan.contexts));
  int64_t done = 0;
  for (const int64_t context : plan.contexts) {
    if (done > 0 && interrupted()) break;
    ContextProfiler profiler(llama, context, plan.rows, runner, rule);
    std::vector<std::vector<StepSample>> samples(plan.rows.size());
    const auto keep = [&](size_t i, const StepSample& sample) {
      samples[i].push_back(sample);
      progress.update(++done);
      const bool all_have_one = !samples.back().empty();
      return !(all_have_one && interrupted());
    };
    interleave(
        plan.rows.size(), plan.repeats, [&](size_t i) { return profiler.step(plan.rows[i]); },
        keep);
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      profile.repeats = std::min(profile.repeats, std::ssize(samples[i]));
      profile.steps.push_back(profiled_step(llama, context, plan.rows[i], profile.drafted,
                                            typical(std::move(samples[i]))));
      if (!llama.device().is_cpu())
        profile.steps.back().launches = profiler.count_launches(plan.rows[i]);
    }
  }
  progress.finish();
  profile.complete = done == plan.repeats * sizes * std::ssize(plan.contexts);
  return profile;
}

std::function<void()> device_wait(at::Device device) {
  if (device.is_cpu()) return {};
  return [device] { c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index()); };
}

}  // namespace medusa
