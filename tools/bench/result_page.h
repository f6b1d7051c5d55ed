// bench.html: the tables and pictures of a bench as one page.
#pragma once

#include <string>

#include "tools/bench/result.h"
#include "tools/report/page_links.h"

namespace medusa {

/// Inline SVG and CSS, no scripts, nothing loaded from elsewhere. The same result gives the same
/// bytes.
std::string bench_page(const BenchResult& result, const PageFrame& frame = {});

}  // namespace medusa
