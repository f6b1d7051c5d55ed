// The building blocks that pages and their sections share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/report/html.h"

namespace medusa {

/// By which a page of ours is known again.
inline constexpr const char* kPageMark = "<meta name=\"generator\" content=\"medusa\">";

/// A whole page: inline CSS, no scripts, nothing loaded from elsewhere.
/// @param title  text;  @param note  text below it, may be empty;  @param body  HTML.
/// @param reload_s  the page loads itself again after so many seconds; 0: it does not.
/// @param links     to other pages of the run.
std::string html_page(std::string_view title, std::string_view note, const std::string& body,
                      int64_t reload_s = 0, const std::vector<PageLink>& links = {});

/// A card with a title. @param id  for links;  @param body  HTML.
std::string section(std::string_view id, std::string_view title, const std::string& body);

/// A paragraph. @param text  plain text, escaped here.
std::string paragraph(std::string_view text, std::string_view css_class = {});

/// A picture with a caption, drawn twice: for wide and for narrow pages. The style sheet shows one
/// of them. @param extra  HTML between the two, such as a legend.
std::string figure(std::string_view title, const std::string& wide, const std::string& narrow,
                   std::string_view caption, const std::string& extra = {});

inline constexpr double kWidePicture = 490, kNarrowPicture = 330;  // CSS pixels

/// "1.53 ×", the two kept on one line.
std::string times(double ratio);

/// Rows of a table; the first cell of a row is its heading. All texts are escaped here.
struct HtmlTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
std::string table(const HtmlTable& table);

/// Rows become columns: for tables wider than a phone.
HtmlTable transposed(const HtmlTable& table);

/// A number that matters, large.
struct Tile {
  std::string value, unit, name, note;
};

/// Tiles side by side; empty for none.
std::string tiles_html(const std::vector<Tile>& tiles);

}  // namespace medusa
