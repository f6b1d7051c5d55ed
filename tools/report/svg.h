// One inline SVG picture. Colors and fonts come from the page's style sheet by class, so that a
// picture follows the light and the dark theme.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medusa {

/// Lengths are CSS pixels, y grows downwards. Classes are ours and are not escaped; texts are.
class Svg {
 public:
  /// @param description  what the picture shows, for those who cannot see it.
  Svg(double width, double height, std::string_view description);

  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view css_class);

  /// @param path  commands of the d attribute.
  void path(const std::string& path, std::string_view css_class, double stroke_width);

  /// @param tip  shown by the browser when the pointer rests on it; may be empty.
  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view tip = {}, double opacity = 1);
  void circle(double x, double y, double radius, std::string_view css_class,
              std::string_view tip = {}, double opacity = 1);

  /// y is the baseline. The class says which end x is: "end", "middle", or neither for the start.
  void text(double x, double y, std::string_view css_class, std::string_view text,
            double font_size = 0);

  /// Reads upwards, centred at (x, y).
  void vertical_text(double x, double y, std::string_view css_class, std::string_view text);

  /// The element. The object may not be used afterwards.
  std::string finish();

 private:
  void shape(std::string_view element, std::string_view tip);
  std::string body_;
};

/// About how wide a text of the pictures' usual size is; fonts differ, so leave a margin.
double text_width(std::string_view text, double font_size = 12);

}  // namespace medusa
