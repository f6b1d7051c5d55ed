#include "infer/factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "infer/cuda/device_decoder.h"
#include "infer/host_decoder.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/rejection_rule.h"
#include "infer/rules/typical_rule.h"

namespace medusa {

RuleKind resolved_rule(const InferConfig& config) {
  if (config.rule != RuleKind::Auto) return config.rule;
  return config.sampling.temperature > 0 ? RuleKind::Match : RuleKind::Greedy;
}

void InferConfig::validate() const {
  const double temperature = sampling.temperature;
  const bool samples =
      rule == RuleKind::Match || rule == RuleKind::Nucleus || rule == RuleKind::Rejection;
  if ((rule == RuleKind::Greedy || rule == RuleKind::Blockwise) && temperature > 0)
    throw UserError(fmt::format(
        "rule '{}' with temperature {}, expected temperature 0; use rule 'match' to sample",
        enum_name(rule), number_text(temperature)));
  if (samples && temperature == 0)
    throw UserError(fmt::format(
        "rule '{}' with temperature 0, expected a temperature above 0; use rule 'greedy' for "
        "the most probable text",
        enum_name(rule)));
  if (rule == RuleKind::Nucleus && sampling.top_p == 1)
    throw UserError(
        "rule 'nucleus' with top_p 1, expected top_p below 1; use rule 'match' to sample from all "
        "tokens");
  if (rule == RuleKind::Blockwise && drafter != DrafterKind::Blockwise)
    throw UserError(fmt::format(
        "rule 'blockwise' with drafter '{}', expected drafter 'blockwise', whose block it judges; "
        "use rule 'greedy' or 'typical' with this drafter",
        enum_name(drafter)));
}

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config) {
  switch (resolved_rule(config)) {
    case RuleKind::Match:
    case RuleKind::Nucleus:
      return std::make_unique<MatchRule>(config.sampling);
    case RuleKind::Rejection:
      return std::make_unique<RejectionRule>(config.sampling);
    case RuleKind::Typical:
      return std::make_unique<TypicalRule>(config.typical, config.sampling);
    case RuleKind::Blockwise:
      return std::make_unique<BlockwiseRule>(config.blockwise.rule);
    case RuleKind::Auto:  // resolved above
    case RuleKind::Greedy:
      break;
  }
  return std::make_unique<GreedyRule>();
}

DraftNeeds needs_of(const InferConfig& config) { return spec_of(config.drafter).needs(config); }

DraftChoice draft_choice(const InferConfig& config) {
  switch (resolved_rule(config)) {
    case RuleKind::Match:
    case RuleKind::Nucleus:
      return {DraftMode::Coupled, config.sampling};
    case RuleKind::Rejection:
      return {DraftMode::Drawn, config.sampling};
    case RuleKind::Auto:  // resolved above
    case RuleKind::Greedy:
    case RuleKind::Typical:
    case RuleKind::Blockwise:
      break;
  }
  return {DraftMode::Best, config.sampling};
}

DrafterFactory make_drafter_factory(const InferConfig& config, const DraftParts& parts) {
  const DraftNeeds needs = needs_of(config);
  MEDUSA_ASSERT(parts.runner != nullptr || !needs.heads);
  MEDUSA_ASSERT(parts.shape != nullptr || !needs.tree);
  MEDUSA_ASSERT(parts.store != nullptr || !needs.store);
  MEDUSA_ASSERT(parts.draft != nullptr || !needs.draft);
  MEDUSA_ASSERT(parts.skipping != nullptr || !needs.skipping);
  MEDUSA_ASSERT(parts.shared != nullptr || !needs.shared);
  MEDUSA_ASSERT(parts.eagle3 != nullptr || !needs.eagle3);
  const DrafterSpec& spec = spec_of(config.drafter);
  DrafterFactory made = spec.make(config, parts);
  return spec.weigh != nullptr ? spec.weigh(config, parts, std::move(made)) : made;
}

namespace {

std::optional<VerifyParameters> verify_parameters(const InferConfig& settings) {
  const SamplingConfig& sampling = settings.sampling;
  const double temperature =
      sampling.temperature > 0 ? bounded_temperature(sampling.temperature) : 0.0;
  switch (resolved_rule(settings)) {
    case RuleKind::Greedy:
      return VerifyParameters{};
    case RuleKind::Match:
    case RuleKind::Nucleus:
      return VerifyParameters{
          .rule = DeviceRule::Match,
          .temperature = temperature,
          .filter = {sampling.top_k, sampling.top_p, static_cast<float>(sampling.min_p)}};
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
  if (CudaLlama* cuda = as_cuda(target.llama().backend())) cuda->use_graphs(settings.graphs);
  if (auto on_device = make_device_decoder(settings, parts, target, cuda_loop_kernels()))
    return on_device;
  return std::make_unique<HostDecoder>(target, make_rule(settings),
                                       make_drafter_factory(settings, parts),
                                       HostDecoderOptions{.cost = step_cost(parts)});
}

}  // namespace medusa
