// Self-prompting: the chat model writes the questions itself, continuing the start of a user's
// turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/target_model.h"
#include "runtime/distill_config.h"
#include "runtime/model.h"

namespace medusa {

/// @param target  over the model; as many questions at the same time as it has free slots.
/// @returns  config.self_prompts texts. Entry i is what became of starter i
/// (data/starter_topics.h),
///           which depends on the seed and i alone; empty: the model did not finish it, or
///           interrupted() ended all.
std::vector<std::string> write_questions(const DistillConfig& config, uint64_t seed,
                                         const Model& model, TargetModel& target);

}  // namespace medusa
