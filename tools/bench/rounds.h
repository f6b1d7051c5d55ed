// Methods take turns, question by question: what happens to the machine happens to all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/answer.h"

namespace medusa {

struct RoundPlan {
  std::string stage;  // as progress names it
  size_t num_methods = 0;
  size_t num_questions = 0;
  int64_t repeats = 1;
};

/// Every method's answers to one question, once.
struct Round {
  size_t question = 0;  // or a group of them that is decoded at the same time
  int64_t repeat = 0;
  std::vector<std::vector<Answer>> answers;  // [methods][turns of every conversation]; one that is
                                             // empty was not given
  bool whole = true;                         // false: interrupted before all methods had run
};

/// Lets one method answer one question, or one group.
using RunFunction = std::function<std::vector<Answer>(size_t method, size_t question)>;

/// Who goes first moves on by one with every question and every repeat: no method always answers
/// on the heels of the same other one.
/// @returns  [num_methods] the methods in the order of this round.
std::vector<size_t> method_order(size_t num_methods, size_t question, int64_t repeat);

inline constexpr int32_t kWarmUpTokens = 8;  // of an answer that does not count

/// Lets every method do a little that does not count: caches and memory are warm then. Shows
/// progress.
/// @param stage  as RoundPlan's.
void warm_up(const std::string& stage, size_t num_methods,
             const std::function<void(size_t method)>& run_method);

/// Runs all questions once, then all again, and so on: repeats of a question lie far apart. Shows
/// progress.
/// @param finished  gets each round once all methods have run it, and the one that an interrupt
///                  cut off with the answers that were finished before.
/// @returns         false: interrupted.
bool run_rounds(const RoundPlan& plan, const RunFunction& run_method,
                const std::function<void(const Round&)>& finished);

}  // namespace medusa
