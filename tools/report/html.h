// The frame and style of every page; text that is safe inside HTML and SVG, and numbers as people
// read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

// The style sheet of the report.

inline constexpr int kNumColors = 12;

/// Light and dark by the reader's setting; on paper always light. Colors c0 to c7 are told apart
/// by color-blind readers too (after Okabe and Ito), lighter on the dark page; c8 to c11 are for
/// pages with many methods, whose rows are named as well.
std::string_view style_sheet();

// The pages of a run link each other.

struct PageLink {
  std::string file;  // beside the page that links it
  std::string name;  // as a reader sees it
};

/// What a page says about itself below its title.
struct PageFrame {
  std::string measured;  // when, and by which medusa; may be empty
  std::vector<PageLink> links;
};

/// The frame of a page that is being written now: today, this program, the pages beside it.
PageFrame frame_of(const std::filesystem::path& folder, const std::string& self);

/// Lists the pages that a run's folder holds: its report, what bench and profile measured.
/// @param self  the page that is being written, which is left out.
std::vector<PageLink> pages_beside(const std::filesystem::path& folder, const std::string& self);

}  // namespace medusa
