// What typical acceptance gives and what it costs: thresholds from strict to loose on prompts that
// the heads were not trained on, beside plain sampling at the same temperature. Paper: Medusa
// (arXiv:2401.10774) §2.3.1, whose ε and δ these are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heads/tree/choice_tree.h"
#include "infer/sampling.h"
#include "runtime/drafting.h"
#include "runtime/model.h"
#include "tools/measure/follower.h"
#include "tools/run/run_config.h"

namespace medusa {

/// A sampled answer, and where its tokens come from.
struct SampledText {
  std::vector<TokenId> prompt, tokens;
  std::vector<bool> drafted;  // [tokens] a draft that the rule let stand; else drawn from the model
  uint64_t seed = 1;
};

/// What a model says of a sampled text at the temperature of its sampling, summed over its tokens.
struct TextScore {
  double tokens = 0;
  double surprisal = 0;  // nats: -ln p
  double kl = 0;  // nats: KL(what the rule emits ‖ p), given the drafts: -ln p of a draft that
                  // stood, whose emission is certain, and 0 of a token drawn from p
  double agreed = 0;  // tokens that plain sampling of the seed would have drawn there
};

/// Reads the text again.
/// @param target    has a free slot.
/// @param sampling  temperature > 0.
TextScore score_text(BackboneTarget& target, const SampledText& text,
                     const SamplingConfig& sampling);

/// The point that decodes where no thresholds are named: the fastest of those whose texts the model
/// finds no less probable than texts of plain sampling, surprisal against the upper end of plain
/// sampling's interval; where there is none, the one of the least surprisal.
/// @param points  at least one.
size_t choose_point(std::span<const TypicalPoint> points, const Estimate& plain_surprisal);

/// Answers validation prompts plainly and with typical acceptance at each pair of thresholds, by
/// turns, in the host's loop, and reads all texts again.
/// @param target    has a free slot.
/// @param drafting  the parts of drafter medusa.
/// @param prompts   at least one.
/// @returns  of the prompts that all had finished, if interrupted.
/// @throws Interrupted  before the first prompt was finished by all.
TypicalSweep sweep_typical(const RunConfig& config, BackboneTarget& target,
                           const LoadedDrafting& drafting, std::span<const TokenId> eos,
                           const std::vector<std::vector<TokenId>>& prompts);

/// A table for people.
std::string typical_sweep_text(const TypicalSweep& sweep);

}  // namespace medusa
