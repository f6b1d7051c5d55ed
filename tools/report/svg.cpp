#include "tools/report/svg.h"

#include <fmt/format.h>

#include "tools/report/html.h"

namespace medusa {
namespace {

/// A tenth of a pixel is finer than any screen: shorter numbers, a smaller page.
std::string length(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string opacity_attribute(double opacity) {
  return opacity < 1 ? fmt::format(" fill-opacity=\"{:.2f}\"", opacity) : "";
}

}  // namespace

Svg::Svg(double width, double height, std::string_view description)
    : body_(fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
                        "aria-label=\"{2}\">\n",
                        length(width), length(height), escape_html(description))) {}

void Svg::shape(std::string_view element, std::string_view tip) {
  const std::string_view name = element.substr(0, element.find(' '));
  if (tip.empty())
    body_ += fmt::format("<{}/>\n", element);
  else
    body_ += fmt::format("<{}><title>{}</title></{}>\n", element, escape_html(tip), name);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  shape(fmt::format("line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"", length(x1),
                    length(y1), length(x2), length(y2), css_class),
        {});
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points,
                   std::string_view css_class) {
  std::string list;
  for (const auto& [x, y] : points)
    list += fmt::format("{}{},{}", list.empty() ? "" : " ", length(x), length(y));
  shape(fmt::format("polyline points=\"{}\" class=\"{}\"", list, css_class), {});
}

void Svg::path(const std::string& path, std::string_view css_class, double stroke_width) {
  shape(fmt::format("path d=\"{}\" class=\"{}\" stroke-width=\"{}\"", path, css_class,
                    length(stroke_width)),
        {});
}

void Svg::rect(double x, double y, double width, double height, std::string_view css_class,
               std::string_view tip, double opacity) {
  shape(
      fmt::format("rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"{}", length(x),
                  length(y), length(width), length(height), css_class, opacity_attribute(opacity)),
      tip);
}

void Svg::circle(double x, double y, double radius, std::string_view css_class,
                 std::string_view tip, double opacity) {
  shape(fmt::format("circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"{}", length(x), length(y),
                    length(radius), css_class, opacity_attribute(opacity)),
        tip);
}

void Svg::text(double x, double y, std::string_view css_class, std::string_view text,
               double font_size) {
  body_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" class=\"{}\"{}>{}</text>\n", length(x), length(y), css_class,
      font_size > 0 ? fmt::format(" style=\"font-size:{}px\"", length(font_size)) : "",
      escape_html(text));
}

void Svg::vertical_text(double x, double y, std::string_view css_class, std::string_view text) {
  body_ += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" class=\"{2} middle\" transform=\"rotate(-90 {0} "
      "{1})\">{3}</text>\n",
      length(x), length(y), css_class, escape_html(text));
}

std::string Svg::finish() { return std::move(body_) + "</svg>\n"; }

double text_width(std::string_view text, double font_size) {
  size_t letters = 0;
  for (const char c : text) letters += (c & 0xC0) == 0x80 ? 0 : 1;  // UTF-8 continuations
  return 0.58 * font_size * static_cast<double>(letters);
}

}  // namespace medusa
