// Everything `medusa bench` prints, writes and draws. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bench/conditions.h"
#include "tools/bench/summary.h"
#include "tools/report/html.h"

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
  int64_t repeats = 1;        // of the last run
  std::string machine;        // one line about it
  std::string settings;       // YAML text of the run
};

// The tables of `medusa bench` as text.

/// "medusa", or "medusa, typical" where the rule is not the baseline's.
std::string row_name(const BenchRow& row);

/// How often each question was asked: "3", or "1 to 5" where the rows' runs differ.
std::string repeats_text(const BenchResult& result);

/// Per temperature: a table for each category and for all questions, accepted lengths, where a
/// step's time goes; then what failed, and what is partial.
std::string bench_table(const BenchResult& result);

// bench.html: the tables and pictures of a bench as one page.

/// Inline SVG and CSS, no scripts, nothing loaded from elsewhere. The same result gives the same
/// bytes.
std::string bench_page(const BenchResult& result, const PageFrame& frame = {});

// The tables of `medusa bench` as a page of docs/benchmarks. No LibTorch.

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
