#include "tests/speed/medusa_speed.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "backbone/llama.h"
#include "backbone/random_weights.h"
#include "base/error.h"
#include "heads/medusa_heads.h"
#include "infer/backbone_target.h"
#include "runtime/measure/device_step_timer.h"

namespace medusa {
namespace {

/// A tree's paths in the order that a calibrated one grows in: the likeliest drafts, deeper ones
/// and further ranks by turns.
std::vector<RankPath> likely_paths(size_t count, int32_t num_heads) {
  struct Path {
    RankPath ranks;
    double probability;
  };
  constexpr double kOfRank[] = {0.5, 0.15, 0.08, 0.05, 0.03, 0.02, 0.015, 0.01};
  std::vector<Path> open, all;
  const auto add_children = [&](const RankPath& ranks, double probability) {
    if (static_cast<int32_t>(ranks.size()) == num_heads) return;
    for (int32_t rank = 0; rank < static_cast<int32_t>(std::size(kOfRank)); ++rank) {
      RankPath child = ranks;
      child.push_back(rank);
      open.push_back({std::move(child), probability * kOfRank[rank]});
    }
  };
  add_children({}, 1);
  std::vector<RankPath> paths;
  while (paths.size() < count) {
    const auto best = std::ranges::max_element(open, {}, &Path::probability);
    const Path taken = *best;
    open.erase(best);
    add_children(taken.ranks, taken.probability);
    paths.push_back(taken.ranks);
  }
  return paths;
}

}  // namespace

std::vector<MedusaSpeed> measure_medusa_speed(const SpeedShape& shape, at::ScalarType dtype,
                                              at::Device device, int64_t samples, uint64_t seed) {
  const c10::InferenceMode no_grad;
  const Weights weights = random_weights(shape.config, dtype, device, seed);
  Llama llama(weights);
  const int64_t most = std::ranges::max(shape.contexts) + 2 * kTimedTokens + 64;
  const std::vector<RankPath> paths =
      likely_paths(static_cast<size_t>(std::ranges::max(shape.rows)) - 1, /*num_heads=*/4);
  struct Kind {
    HeadInput input;
    RuleKind rule;
  };
  std::vector<MedusaSpeed> speeds;
  for (const Kind kind :
       {Kind{HeadInput::Hidden, RuleKind::Greedy}, Kind{HeadInput::Root, RuleKind::Greedy},
        Kind{HeadInput::Root, RuleKind::Typical}}) {
    HeadsConfig config;
    config.num_heads = 4;
    config.input = kind.input;
    config.output_size = std::min(config.output_size, shape.config.vocab_size);
    std::vector<TokenId> kept(static_cast<size_t>(config.output_size));
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<TokenId>(i);
    const MedusaHeads heads = make_heads(config, weights, kept, seed);
    InferConfig settings;
    settings.rule = kind.rule;
    settings.sampling.temperature = kind.rule == RuleKind::Typical ? 0.7 : 0.0;
    for (const int64_t context : shape.contexts) {
      BackboneTarget target(llama, 1, most);
      std::vector<TokenId> text;
      for (int64_t i = 0; i < context; ++i)
        text.push_back(static_cast<TokenId>(7919 * i % shape.config.vocab_size));
      const auto times = time_device_steps(target, heads, settings, paths, text, shape.rows,
                                           samples, cuda_loop_kernels());
      if (!times)
        throw UserError(
            "--only: found medusa where steps run in the host's loop, expected a GPU and a program "
            "with CUDA kernels; leave medusa out");
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
