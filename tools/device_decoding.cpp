#include "tools/device_decoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace medusa {
namespace {

std::optional<DeviceJudge> judge_of(const InferConfig& settings) {
  const SamplingConfig& sampling = settings.sampling;
  const bool filters = sampling.top_k > 0 || sampling.top_p < 1;
  const double temperature = sampling.temperature;
  switch (resolved_rule(settings)) {
    case RuleKind::Greedy:
      return DeviceJudge{};
    case RuleKind::Match:
      if (filters) return std::nullopt;
      return DeviceJudge{DeviceRule::Match, temperature};
    case RuleKind::Typical:
      if (filters && temperature > 0) return std::nullopt;
      return DeviceJudge{DeviceRule::Typical, temperature, settings.typical.epsilon,
                         settings.typical.delta};
    default:
      return std::nullopt;
  }
}

/// Whether the drafter proposes the same tree shape in every step.
bool drafts_fixed_trees(const InferConfig& settings) {
  if (settings.drafter == DrafterKind::None) return true;
  return settings.drafter == DrafterKind::Medusa && !settings.medusa.adaptive &&
         !settings.medusa.dynamic;
}

}  // namespace

std::unique_ptr<DeviceDecoding> make_device_decoding(const InferConfig& settings,
                                                     const DraftParts& parts,
                                                     BackboneTarget& target,
                                                     const DeviceLoopKernels& kernels) {
  Llama& llama = target.llama();
  const auto judge = judge_of(settings);
  if (!settings.graphs || llama.on_device() == nullptr || !kernels.complete() || !judge ||
      !drafts_fixed_trees(settings))
    return nullptr;
  auto out = std::make_unique<DeviceDecoding>();
  TreeShape root_alone;
  if (settings.drafter == DrafterKind::Medusa) {
    if (parts.heads == nullptr || !DeviceHeads::supports(parts.heads->config, llama.weights()))
      return nullptr;
    const auto& ranks = parts.shape->ranks;
    const int64_t top_k = 1 + *std::max_element(ranks.begin(), ranks.end());
    out->heads = std::make_unique<DeviceHeads>(
        *parts.heads, llama.weights(), *parts.shape, std::max<int64_t>(top_k, 1), *kernels.heads,
        *llama.on_device()->kernels().products, pick_with(*kernels.steps));
  }
  out->decoder = std::make_unique<DeviceDecoder>(target, out->heads.get(),
                                                 parts.shape != nullptr ? *parts.shape : root_alone,
                                                 *judge, kernels);
  return out;
}

std::string graphs_text(const DeviceDecoder& decoder) {
  std::string text;
  for (const CapturedGraph& each : decoder.graphs())
    text +=
        fmt::format("graph: {} sequence{} of {} node{} within {} tokens, {} kernels\n",
                    each.num_sequences, each.num_sequences == 1 ? "" : "s", each.num_nodes,
                    each.num_nodes == 1 ? "" : "s", each.max_context, decoder.num_kernels(each));
  return text;
}

}  // namespace medusa
