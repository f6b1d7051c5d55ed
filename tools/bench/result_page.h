// bench.html: the tables and pictures of a bench as one page.
#pragma once

#include <string>

#include "tools/bench/result.h"

namespace medusa {

/// Inline SVG and CSS, no scripts, nothing loaded from elsewhere. The same result gives the same
/// bytes.
std::string bench_page(const BenchResult& result);

}  // namespace medusa
