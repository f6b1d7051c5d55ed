// The style sheet of the report.
#pragma once

#include <string_view>

namespace medusa {

inline constexpr int kNumColors = 12;

/// Light and dark by the reader's setting; on paper always light. Colors c0 to c7 are told apart
/// by color-blind readers too (after Okabe and Ito), lighter on the dark page; c8 to c11 are for
/// pages with many methods, whose rows are named as well.
std::string_view style_sheet();

}  // namespace medusa
