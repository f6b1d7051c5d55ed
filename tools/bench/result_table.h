// The tables of `medusa bench` as text.
#pragma once

#include <string>

#include "tools/bench/result.h"

namespace medusa {

/// "medusa", or "medusa, typical" where the rule is not the baseline's.
std::string row_name(const BenchRow& row);

/// Per temperature: a table for each category and for all questions, accepted lengths, where a
/// step's time goes; then what failed, and what is partial.
std::string bench_table(const BenchResult& result);

}  // namespace medusa
