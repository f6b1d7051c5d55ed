// Times the parts of a decoding step by the number of its rows: medusa profile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backbone/llama.h"
#include "heads/heads_runner.h"
#include "heads/tree/choice_tree.h"
#include "infer/acceptance_rule.h"
#include "tools/profile/profile_result.h"

namespace medusa {

/// What to time.
struct ProfilePlan {
  std::vector<int32_t> rows;      // N of each step, ascending
  std::vector<int64_t> contexts;  // committed rows before it, ascending
  int64_t repeats = 0;
};

/// Paths of a tree of any size over K heads: those with the smallest sum of (rank + 1) first, which
/// is about what calibration finds. Each is behind its prefix.
std::vector<RankPath> low_rank_paths(int32_t num_heads, int32_t top_k, size_t count);

/// Times every step, sizes by turns within each repetition. Of a step the half of the repetitions
/// in the middle is kept, by their time, and averaged, so that the parts add up to the step.
/// Interrupted it has the repetitions so far, at least one.
/// @param runner  drafts trees of low_rank_paths(); null: chains of arbitrary tokens, not drafted.
/// @param rule    judges them; null: the greedy one.
/// @returns       without a roofline.
Profile profile_steps(Llama& llama, const ProfilePlan& plan, HeadsRunner* runner,
                      const std::shared_ptr<const AcceptanceRule>& rule = nullptr);

/// Waits for the device to do what was asked of it; empty on a CPU, which does it at once.
std::function<void()> device_wait(at::Device device);

}  // namespace medusa
