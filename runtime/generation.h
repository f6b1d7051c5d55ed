// Runs the decoding loop for distillation: plain sampling, with the states.
#pragma once

#include "data/self_distill.h"
#include "infer/acceptance_rule.h"
#include "infer/infer_config.h"
#include "infer/target_model.h"
#include "runtime/model.h"

namespace medusa {

/// A GenerateFunction over a target: plain sampling, `batch` sequences at a time.
/// @param hidden_size  H: hand over the states that predicted each token; 0: do not.
GenerateFunction make_generate_function(TargetModel& target, const SamplingConfig& sampling,
                                        std::vector<TokenId> eos, int64_t hidden_size);

}  // namespace medusa
