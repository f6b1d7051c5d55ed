// What fills a dataset: the decoding loop with plain sampling, or texts that are there; with the
// states.
#pragma once

#include "data/self_distill.h"
#include "infer/acceptance_rule.h"
#include "infer/backbone_target.h"
#include "infer/infer_config.h"
#include "infer/target_model.h"
#include "runtime/model.h"

namespace medusa {

/// A GenerateFunction over a target: plain sampling, `batch` sequences at a time.
/// @param hidden_size  H: hand over the states that predicted each token; 0: do not.
GenerateFunction make_generate_function(TargetModel& target, const SamplingConfig& sampling,
                                        std::vector<TokenId> eos, int64_t hidden_size);

/// A GenerateFunction that continues the prompt of sample i, for request.index i, with the sample's
/// own answer.
/// @param target, samples  must outlive it.
GenerateFunction make_reading_function(BackboneTarget& target, std::span<const Sample> samples,
                                       bool with_states);

}  // namespace medusa
