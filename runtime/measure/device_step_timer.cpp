#include "runtime/measure/device_step_timer.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "runtime/measure/interleave.h"

namespace medusa {
namespace {

using Clock = std::chrono::steady_clock;

/// Mean milliseconds from one step's tokens to the next one's, so that neither the prompt nor the
/// step that is started behind a text's last one is counted.
double sample_ms(DeviceDecoder& decoder, std::span<const TokenId> context) {
  DecodeRequest request;
  request.prompt.assign(context.begin(), context.end());
  request.limits.max_new_tokens = kTimedTokens;
  std::optional<Clock::time_point> first;
  double seconds = 0;
  request.emit = [&](const EmittedToken&) {
    if (!first) first = Clock::now();
    seconds = seconds_since(*first);
    return true;
  };
  int64_t steps = 0;
  std::optional<DecodeRequest> only(std::move(request));
  decode(
      decoder, [&] { return std::exchange(only, std::nullopt); },
      [&](size_t, const DecodeStats& stats) {
        steps = stats.steps;
        return true;
      });
  MEDUSA_ASSERT(steps > 1, steps);
  return 1e3 * seconds / static_cast<double>(steps - 1);
}

}  // namespace

std::optional<StepTimes> time_device_steps(BackboneTarget& target, const MedusaHeads& heads,
                                           InferConfig settings, std::span<const RankPath> paths,
                                           std::span<const TokenId> context,
                                           const std::vector<int32_t>& sizes, int64_t repeats,
                                           const DeviceLoopKernels& kernels,
                                           ProgressFunction tell) {
  MEDUSA_ASSERT(context.size() >= 2 && !sizes.empty() &&
                static_cast<size_t>(sizes.back()) <= paths.size() + 1);
  const auto decoding_with = [&](int32_t num_nodes) {
    ChoiceTree tree;
    if (num_nodes > 1)
      tree = make_choice_tree({paths.begin(), paths.begin() + (num_nodes - 1)}, 0, "timed tree");
    const TreeShape shape = tree.shape();
    DraftParts parts;
    parts.heads = &heads;
    parts.shape = &shape;
    settings.drafter = num_nodes == 1 ? DrafterKind::None : DrafterKind::Medusa;
    return make_device_decoder(settings, parts, target, kernels);
  };
  if (!decoding_with(sizes.back())) return std::nullopt;
  StepTimes times{.sizes = sizes, .step_ms = {}};
  Progress progress(std::move(tell), "time steps", "samples",
                    repeats * static_cast<int64_t>(sizes.size()));
  int64_t done = 0;
  for (const int32_t n : sizes) {
    const auto decoding = decoding_with(n);
    sample_ms(*decoding, context);  // captures the graphs
    std::vector<double> samples;
    for (int64_t i = 0; i < repeats; ++i) {
      samples.push_back(sample_ms(*decoding, context));
      stop_if_interrupted();
      progress.update(++done);
    }
    times.step_ms.push_back(undisturbed(std::move(samples)));
  }
  progress.finish();
  return times;
}

}  // namespace medusa
