// Everything `medusa bench` prints, writes and draws. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bench/conditions.h"
#include "tools/bench/summary.h"

namespace medusa {

/// A method that could not run, or not to the end: its answers are left out.
struct FailedMethod {
  std::string method;
  double temperature = 0;
  std::string reason;
};

/// Everything that is printed, written and drawn.
struct BenchResult {
  Conditions conditions;
  std::vector<BenchRow> rows;  // as summarize() orders them
  std::vector<FailedMethod> failed;
  bool complete = true;       // false: interrupted
  int64_t num_questions = 0;  // that were asked for
  int64_t repeats = 1;
  std::string machine;   // one line about it
  std::string settings;  // YAML text of the run
};

}  // namespace medusa
