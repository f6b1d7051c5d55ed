#include "infer/make_decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "infer/host_decoder.h"

namespace medusa {
namespace {

std::optional<VerifyParameters> verify_parameters(const InferConfig& settings) {
  const SamplingConfig& sampling = settings.sampling;
  const double temperature = sampling.temperature;
  switch (resolved_rule(settings)) {
    case RuleKind::Greedy:
      return VerifyParameters{};
    case RuleKind::Match:
      if (sampling.filters()) return std::nullopt;
      return VerifyParameters{DeviceRule::Match, temperature};
    case RuleKind::Typical:
      if (sampling.filters() && temperature > 0) return std::nullopt;
      return VerifyParameters{DeviceRule::Typical, temperature, settings.typical.epsilon,
                              settings.typical.delta};
    default:
      return std::nullopt;
  }
}

/// Whether the drafter proposes the same tree shape in every step.
bool drafts_fixed_trees(const InferConfig& settings) {
  if (settings.drafter == DrafterKind::None) return true;
  return settings.drafter == DrafterKind::Medusa && !settings.medusa.adaptive.value_or(false) &&
         !settings.medusa.dynamic;
}

}  // namespace

std::unique_ptr<DeviceDecoder> make_device_decoder(const InferConfig& settings,
                                                   const DraftParts& parts, BackboneTarget& target,
                                                   const DeviceLoopKernels& kernels) {
  Llama& llama = target.llama();
  const CudaLlama* backend = as_cuda(llama.backend());
  const auto verify = verify_parameters(settings);
  if (!settings.graphs || backend == nullptr || !kernels.complete() || !verify ||
      !drafts_fixed_trees(settings))
    return nullptr;
  std::unique_ptr<DeviceHeads> heads;  // none: plain decoding
  TreeShape root_alone;
  if (settings.drafter == DrafterKind::Medusa) {
    if (parts.heads == nullptr || !DeviceHeads::supports(parts.heads->config, llama.weights()))
      return nullptr;
    const auto& ranks = parts.shape->ranks;
    const int64_t top_k = 1 + *std::max_element(ranks.begin(), ranks.end());
    heads = std::make_unique<DeviceHeads>(*parts.heads, llama.weights(), *parts.shape,
                                          std::max<int64_t>(top_k, 1), *kernels.heads,
                                          *backend->kernels().gemms, pick_with(*kernels.steps));
  }
  return std::make_unique<DeviceDecoder>(target, std::move(heads),
                                         parts.shape != nullptr ? *parts.shape : root_alone,
                                         *verify, kernels);
}

std::unique_ptr<Decoder> make_decoder(const InferConfig& settings, const DraftParts& parts,
                                      BackboneTarget& target) {
  settings.validate();
  if (auto on_device = make_device_decoder(settings, parts, target, cuda_loop_kernels()))
    return on_device;
  return std::make_unique<HostDecoder>(target, make_rule(settings),
                                       make_drafter_factory(settings, parts),
                                       HostDecoderOptions{.cost = step_cost(parts)});
}

}  // namespace medusa
