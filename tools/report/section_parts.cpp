#include "tools/report/section_parts.h"

#include <fmt/format.h>

#include "tools/report/html.h"

namespace medusa {

namespace {

std::string links_html(const std::vector<PageLink>& links) {
  if (links.empty()) return {};
  std::string html = "<nav>";
  for (const PageLink& each : links)
    html += fmt::format("<a href=\"{}\">{}</a>", escape_html(each.file), escape_html(each.name));
  return html + "</nav>\n";
}

}  // namespace

std::string html_page(std::string_view title, std::string_view note, const std::string& body,
                      int64_t reload_s, const std::vector<PageLink>& links) {
  const std::string reload =
      reload_s > 0 ? fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", reload_s) : "";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "{5}\n{4}<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{0}</title>\n<style>\n{1}</style>\n"
      "</head>\n<body>\n<main>\n<header>\n<h1>{0}</h1>\n{2}{6}</header>\n{3}</main>\n</body>\n</"
      "html>\n",
      escape_html(title), style_sheet(), note.empty() ? "" : paragraph(note, "note"), body, reload,
      kPageMark, links_html(links));
}

std::string section(std::string_view id, std::string_view title, const std::string& body) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, escape_html(title),
                     body);
}

std::string paragraph(std::string_view text, std::string_view css_class) {
  const std::string attribute = css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
  return fmt::format("<p{}>{}</p>\n", attribute, escape_html(text));
}

std::string figure(std::string_view title, const std::string& wide, const std::string& narrow,
                   std::string_view caption, const std::string& extra) {
  if (wide.empty()) return {};
  return fmt::format(
      "<figure>\n<h3>{}</h3>\n{}<div class=\"wide\">\n{}</div>\n<div class=\"narrow\">\n{}</div>\n"
      "<figcaption>{}</figcaption>\n</figure>\n",
      escape_html(title), extra, wide, narrow, escape_html(caption));
}

std::string table(const HtmlTable& table) {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& cell : table.header) html += "<th>" + escape_html(cell) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      html +=
          i == 0 ? "<th>" + escape_html(row[i]) + "</th>" : "<td>" + escape_html(row[i]) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

HtmlTable transposed(const HtmlTable& table) {
  HtmlTable out;
  for (size_t column = 0; column < table.header.size(); ++column) {
    std::vector<std::string> row{table.header[column]};
    for (const auto& each : table.rows) row.push_back(each[column]);
    if (column == 0)
      out.header = std::move(row);
    else
      out.rows.push_back(std::move(row));
  }
  return out;
}

std::string tiles_html(const std::vector<Tile>& tiles) {
  if (tiles.empty()) return {};
  std::string html = "<div class=\"tiles\">\n";
  for (const Tile& tile : tiles)
    html += fmt::format(
        "<div class=\"tile\"><b>{}<small>{}</small></b><span>{}</span><em>{}</em></div>\n",
        escape_html(tile.value), escape_html(tile.unit), escape_html(tile.name),
        escape_html(tile.note));
  return html + "</div>\n";
}

std::string times(double ratio) { return fmt::format("{:.2f}\u00A0×", ratio); }

}  // namespace medusa
