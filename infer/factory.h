// Settings -> drafter, rule and decoder: the GPU's own loop where it can run them, else the host's.
#pragma once

#include <memory>

#include "infer/decoder.h"
#include "infer/draft_models/draft_choice.h"
#include "infer/drafter_spec.h"
#include "infer/infer_config.h"

namespace medusa {

class BackboneTarget;
class DeviceDecoder;
struct DeviceLoopKernels;

std::unique_ptr<AcceptanceRule> make_rule(const InferConfig& config);

/// Gives what config.drafter is made from.
DraftNeeds needs_of(const InferConfig& config);

/// Makes config.drafter, with its own settings.
DrafterFactory make_drafter_factory(const InferConfig& config, const DraftParts& parts);

/// Says how a draft model's tokens are chosen so that config's rule is exact.
DraftChoice draft_choice(const InferConfig& config);

/// The fastest decoder that runs these settings. It must not outlive the target and the parts.
/// @param settings  with graphs off, tokens are emitted with their logits on every device.
/// @param target    that will decode.
/// @throws UserError  drafter, rule and temperature do not go together.
std::unique_ptr<Decoder> make_decoder(const InferConfig& settings, const DraftParts& parts,
                                      BackboneTarget& target);

/// The GPU's own loop: for plain decoding and for heads without a prefix layer over the whole
/// choice tree, under the rules greedy, match and typical with no tokens filtered, on a backbone
/// that runs on a GPU's kernels.
/// @param parts  of the drafter; its heads and shape are read.
/// @returns      null where the host's loop is to run. Must not outlive the target.
std::unique_ptr<DeviceDecoder> make_device_decoder(const InferConfig& settings,
                                                   const DraftParts& parts, BackboneTarget& target,
                                                   const DeviceLoopKernels& kernels);

}  // namespace medusa
