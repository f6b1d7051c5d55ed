// Plain and speculative decoding side by side on the same prompts, alternately.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "infer/infer_config.h"
#include "runtime/answer.h"
#include "runtime/drafting.h"
#include "runtime/model.h"
#include "tools/bench/statistics.h"
#include "tools/run/run_config.h"

namespace medusa {

/// One row of the table.
struct MethodResult {
  std::string drafter;
  std::string rule;
  double temperature = 0;
  double tokens_per_s = 0;     // emitted / decode seconds, over all prompts; prefill is not in it
  double tokens_per_step = 0;  // emitted / steps (the paper's acceleration rate)
  double step_overhead = 0;    // seconds per step / seconds per plain step
  double speedup = 0;          // tokens_per_s / those of plain decoding at the same temperature
  std::optional<Interval> speedup_95 = {};  // paired bootstrap over the prompts; of two or more
  int64_t same_text = 0;  // prompts whose tokens equal plain decoding's; of lossless rules only
  bool lossless = true;
  std::vector<int64_t> emitted_per_step;  // histogram: [n] = steps that emitted n tokens
  DecodeTimes times;                      // summed over all prompts
};

/// The first prompt's answer as one of the greedy methods gave it.
struct ExampleAnswer {
  std::string method;  // as the table names it
  double seconds = 0;  // of decoding
  std::vector<AnswerStep> steps;
};

struct Comparison {
  std::vector<MethodResult> methods;  // plain first; empty: interrupted during the first prompt
  int64_t num_prompts = 0;            // that were decoded by every method
  std::string dtype;
  std::string heads;     // fingerprint
  bool complete = true;  // false: interrupted, only the prompts so far
  std::vector<ExampleAnswer> example{};
};

/// The drafter whose parts are those of all that is compared: `merge` where it merges the heads'
/// drafts with others, else `medusa`.
DrafterKind compared_drafter(const InferConfig& settings);

struct ComparedMethod {
  DrafterKind drafter = DrafterKind::None;
  RuleKind rule = RuleKind::Greedy;
};

/// Plain, Medusa, and what merges Medusa's drafts with others, greedy.
std::vector<ComparedMethod> greedy_methods(const InferConfig& settings);
/// These, then plain and Medusa typical, sampled at one temperature.
std::vector<ComparedMethod> all_methods(const InferConfig& settings);

/// Decodes each prompt once with every method in turn (run_rounds()). A method is compared with
/// the last plain one that stands before it.
/// @param drafting  the parts of compared_drafter().
/// @param methods   begin with plain decoding.
/// @param prompts   at least one.
Comparison compare(const RunConfig& config, const Model& model, BackboneTarget& target,
                   const LoadedDrafting& drafting, const std::vector<ComparedMethod>& methods,
                   const std::vector<std::vector<TokenId>>& prompts);

/// The table as it is printed.
std::string comparison_table(const Comparison& comparison);

/// The contents of compare.json.
/// @param question  the first prompt, as people read it.
nlohmann::json comparison_json(const Comparison& comparison, const std::string& question,
                               const RunConfig& config, const Model& model);

// Twelve questions for whoever brings none.

/// Those of configs/demo_questions.jsonl.
std::vector<Prompt> sample_questions();

}  // namespace medusa
