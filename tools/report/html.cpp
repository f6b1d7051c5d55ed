#include "tools/report/html.h"

#include <fmt/format.h>

#include "base/shown_text.h"
#include "base/utf8.h"
#include "tools/version.h"

namespace medusa {

namespace {

std::string_view escaped_ascii(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    if (step.kind != Utf8Step::Kind::Character || is_control(step.codepoint)) {
      out += kReplacement;
    } else if (const std::string_view entity = escaped_ascii(text.front()); !entity.empty()) {
      out += entity;
    } else {
      out += text.substr(0, step.size);
    }
    text.remove_prefix(step.size);
  }
  return out;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t sign = number < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > sign + 3;) {
    i -= 3;
    digits.insert(i, "\xE2\x80\xAF");  // U+202F narrow no-break space
  }
  return digits;
}

std::string percent(double share) { return fmt::format("{:.1f}\u00A0%", 100 * share); }

std::string details_block(std::string_view summary, const std::string& body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_html(summary), body);
}

std::string preformatted(std::string_view text) { return "<pre>" + escape_html(text) + "</pre>\n"; }

PageFrame frame_of(const std::filesystem::path& folder, const std::string& self) {
  return {.measured = date_text() + "; " + version_text(), .links = pages_beside(folder, self)};
}

std::vector<PageLink> pages_beside(const std::filesystem::path& folder, const std::string& self) {
  std::vector<PageLink> links;
  for (const PageLink& each :
       {PageLink{"report.html", "The run"}, PageLink{"bench.html", "Decoding methods compared"},
        PageLink{"profile.html", "Where the time of a step goes"}})
    if (each.file != self && std::filesystem::exists(folder / each.file)) links.push_back(each);
  return links;
}

}  // namespace medusa
