// Text that is safe inside HTML and SVG, and numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace medusa {

/// For element content and for attribute values in double quotes. Bytes that are not UTF-8 and
/// control characters become U+FFFD: the page stays readable whatever a file held.
std::string escape_html(std::string_view text);

/// 1 234 567, with thin spaces that do not break.
std::string grouped(int64_t number);

/// "42.3 %"; share is from 0 to 1.
std::string percent(double share);

/// A collapsed block: a summary line, and what it opens to.
/// @param summary  text;  @param body  HTML.
std::string details_block(std::string_view summary, const std::string& body);

/// Text as it stands, in a fixed-width font.
std::string preformatted(std::string_view text);

}  // namespace medusa
