// What `medusa bench` times: methods that answer whole conversations, by turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "infer/infer_config.h"
#include "runtime/answer.h"

namespace medusa {

/// A way to decode: drafter, rule and temperature, ready to run.
struct Method {
  InferConfig settings;
  bool lossless = true;  // its rule promises the target's own text, or its distribution
  std::unique_ptr<Decoder> decoder;

  std::string drafter() const { return enum_name(settings.drafter); }
  std::string rule_name() const { return enum_name(resolved_rule(settings)); }
  double temperature() const { return settings.sampling.temperature; }

  /// True: the rule promises the text of plain decoding at this temperature, token for token.
  bool same_text() const;
};

/// @param parts   what the drafter needs; must outlive the method.
/// @param target  that will decode; must outlive the method.
/// @throws UserError  drafter, rule and temperature do not go together.
Method make_method(const InferConfig& settings, const DraftParts& parts, BackboneTarget& target);

// Questions with all their turns, answered by one method: the model's own answers go into the next
// prompts.

struct SeededPrompt {
  const Prompt* prompt = nullptr;  // not owned
  uint64_t seed = 1;
};

/// Answers the first turns of all at the same time, then the second ones, and so on, through the
/// chat template. A conversation ends early where a prompt no longer fits into the context, and all
/// when interrupted.
/// @returns  [conversations][turns], at least one turn each.
/// @throws UserError  a first prompt does not fit.
std::vector<std::vector<Answer>> run_conversations(const Model& model, Decoder& decoder,
                                                   const std::vector<SeededPrompt>& conversations,
                                                   const AnswerOptions& options);

// Methods take turns, question by question: what happens to the machine happens to all of them.

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
