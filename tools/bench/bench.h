// Runs methods over questions by turns and keeps every answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "infer/infer_config.h"
#include "runtime/model.h"
#include "tools/bench/result.h"
#include "tools/run/run_config.h"

namespace medusa {

struct BenchPlan {
  std::vector<DrafterKind> methods;  // each once, the baseline first
  std::vector<double> temperatures;  // each once
  RuleKind rule = RuleKind::Auto;    // of all methods but the baseline
  int64_t repeats = 1;
  int32_t slots = 1;  // questions that are decoded at the same time and count as one
};

/// What one run of the bench measured.
struct Measurement {
  std::vector<BenchSample> samples;
  std::vector<FailedMethod> failed;
  int64_t num_questions = 0;  // groups of them, where several are decoded at the same time
  bool complete = true;       // false: interrupted, only the rounds so far
};

/// Names as `generate.drafter` takes them. The baseline is put first, asked for or not.
/// @throws UserError  unknown, or given twice.
std::vector<DrafterKind> parse_methods(const std::vector<std::string>& names);

/// The questions whose first prompt fits into the context; a line on stderr counts the others.
/// @param limit  take the first so many; 0: all.
/// @throws UserError  no question fits.
std::vector<Prompt> fitting_questions(std::vector<Prompt> questions, int64_t limit,
                                      const Model& model);

/// How a method of the plan decodes.
InferConfig method_settings(const RunConfig& config, const BenchPlan& plan, DrafterKind kind,
                            double temperature);

/// @param run      number of this run, for BenchSample::run.
/// @param so_far   gets what is measured, not complete, about once a minute between two rounds.
/// @throws UserError  the baseline itself cannot run, or none of the other methods.
Measurement run_bench(const RunConfig& config, const Model& model, const BenchPlan& plan,
                      const std::vector<Prompt>& questions, int64_t run,
                      const std::function<void(const Measurement&)>& so_far);

}  // namespace medusa
