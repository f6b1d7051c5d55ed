#include "tests/speed/medusa_speed.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "backbone/cuda/cuda_llama.h"
#include "backbone/llama.h"
#include "backbone/random_weights.h"
#include "base/check.h"
#include "base/error.h"
#include "heads/medusa_heads.h"
#include "infer/backbone_target.h"
#include "runtime/measure/device_step_timer.h"
#include "tools/profile/profile.h"

namespace medusa {
namespace {

constexpr int32_t kHeads = 4, kTopK = 10;

/// [V_t] tokens that the heads draft.
std::vector<TokenId> first_tokens(int64_t count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

}  // namespace

std::vector<MedusaSpeed> measure_medusa_speed(const SpeedShape& shape, at::ScalarType dtype,
                                              at::Device device, int64_t samples, uint64_t seed) {
  if (device.is_cpu() || !cuda_kernels().complete() || !cuda_loop_kernels().complete())
    throw UserError(
        "--only: found medusa, whose captured steps want a GPU and a program with CUDA kernels, "
        "expected --device cuda and a program made where nvcc is; leave medusa out");
  const c10::InferenceMode no_grad;
  const Weights weights = random_weights(shape.config, dtype, device, seed);
  Llama llama(weights);
  const int64_t most = std::ranges::max(shape.contexts) + 2 * kTimedTokens + 64;
  std::vector<int32_t> sizes = shape.rows;  // ascending, with the plain step
  if (sizes.front() != 1) sizes.insert(sizes.begin(), 1);
  const std::vector<RankPath> paths =
      low_rank_paths(kHeads, kTopK, static_cast<size_t>(sizes.back()) - 1);
  struct Kind {
    HeadInput input;
    RuleKind rule;
  };
  std::vector<MedusaSpeed> speeds;
  for (const Kind kind :
       {Kind{HeadInput::Hidden, RuleKind::Greedy}, Kind{HeadInput::Root, RuleKind::Greedy},
        Kind{HeadInput::Root, RuleKind::Typical}}) {
    HeadsConfig config;
    config.num_heads = kHeads;
    config.input = kind.input;
    config.output_size = std::min(config.output_size, shape.config.vocab_size);
    const MedusaHeads heads = make_heads(config, weights, first_tokens(config.output_size), seed);
    InferConfig settings;
    settings.rule = kind.rule;
    settings.sampling.temperature = kind.rule == RuleKind::Typical ? 0.7 : 0.0;
    for (const int64_t context : shape.contexts) {
      BackboneTarget target(llama, 1, most);
      const auto times = time_device_steps(target, heads, settings, paths,
                                           speed_text(context, shape.config.vocab_size), sizes,
                                           samples, cuda_loop_kernels());
      MEDUSA_ASSERT(times.has_value());
      speeds.push_back({kind.input, kind.rule, context, times->sizes, times->step_ms});
    }
  }
  return speeds;
}

std::string medusa_speed_table(const std::string& shape, const std::vector<MedusaSpeed>& speeds) {
  std::string table =
      fmt::format("{}: ms of a captured step, and times the plain one\n{:<9}{:<9}{:>8}", shape,
                  "heads", "rule", "context");
  for (const int32_t nodes : speeds.front().num_nodes) table += fmt::format("{:>17}", nodes);
  table += " nodes\n";
  for (const MedusaSpeed& speed : speeds) {
    table += fmt::format("{:<9}{:<9}{:>8}", enum_name(speed.input), enum_name(speed.rule),
                         speed.context);
    for (const double ms : speed.step_ms)
      table += fmt::format("{:>9.3f} ({:.2f}x)", ms, ms / speed.step_ms.front());
    table += "\n";
  }
  return table;
}

}  // namespace medusa
