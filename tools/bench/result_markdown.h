// The tables of `medusa bench` as a page of docs/benchmarks. No LibTorch.
#pragma once

#include <string>

#include "tools/bench/result.h"

namespace medusa {

/// Where and when it was measured, and with what.
struct MeasuredBy {
  std::string date;     // "2026-11-24"
  std::string version;  // of the program, with its commit where that is known
  std::string command;  // as it was typed
};

/// A heading, the conditions, and a table of all questions for each temperature; of several
/// categories a table of their speed-ups.
std::string bench_markdown(const BenchResult& result, const MeasuredBy& by);

}  // namespace medusa
