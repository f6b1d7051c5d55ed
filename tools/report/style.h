// The style sheet of the report.
#pragma once

#include <string_view>

namespace medusa {

/// Light and dark by the reader's setting; on paper always light. Colours c0 to c7 are told apart
/// by colour-blind readers too (after Okabe and Ito), lighter on the dark page.
std::string_view style_sheet();

}  // namespace medusa
