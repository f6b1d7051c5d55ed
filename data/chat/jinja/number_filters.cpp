// Filters that take or give numbers, and default.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/operators.h"
#include "data/chat/jinja/parameters.h"
#include "data/chat/jinja/print.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {
namespace {

void require_input(const Value& input, std::string_view filter) {
  if (is_undefined(input))
    throw Error(describe(input), fmt::format("a value for the filter '{}'", filter));
}

Value abs_filter(const Value& input, const Arguments& arguments, Heap&) {
  const Parameters given("abs", arguments, {});
  const auto number = as_number(input);
  if (!number) throw Error(fmt::format("{} is given to abs", describe(input)), "a number");
  if (std::holds_alternative<double>(input)) return std::fabs(*number);
  return apply_sign(*number < 0, input);
}

Value truncate(double number) {
  if (!(std::fabs(number) < 0x1p63))
    throw Error(fmt::format("the float {} is made an integer", print_float(number)),
                "one within 64 bits");
  return static_cast<int64_t>(number);
}

Value int_filter(const Value& input, const Arguments& arguments, Heap&) {
  const Parameters given("int", arguments, {"default", "base"});
  require_input(input, "int");
  if (given.integer(1, 10) != 10) throw Error("another base of the filter 'int'", "10");
  if (const auto number = as_int(input)) return *number;
  if (const auto* number = std::get_if<double>(&input); number && !std::isnan(*number))
    return truncate(*number);
  if (const Text* text = as_text(input)) {
    if (const auto number = parse_int(text->utf8)) return *number;
    if (const auto number = parse_float(text->utf8); number && std::isfinite(*number))
      return truncate(*number);
  }
  return given.find(0) ? *given.find(0) : int64_t{0};
}

Value float_filter(const Value& input, const Arguments& arguments, Heap&) {
  const Parameters given("float", arguments, {"default"});
  require_input(input, "float");
  if (const auto number = as_number(input)) return *number;
  if (const Text* text = as_text(input))
    if (const auto number = parse_float(text->utf8)) return *number;
  return given.find(0) ? *given.find(0) : 0.0;
}

/// To so many digits behind the point; what lies half way goes to the even digit, judged by the
/// exact binary number: printing does just that.
double round_half_even(double number, int digits) {
  if (!std::isfinite(number)) return number;
  const std::string text = fmt::format("{:.{}f}", number, digits);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

Value round_filter(const Value& input, const Arguments& arguments, Heap&) {
  const Parameters given("round", arguments, {"precision", "method"});
  const auto number = as_number(input);
  if (!number) throw Error(fmt::format("{} is rounded", describe(input)), "a number");
  const int64_t precision = given.integer(0, 0);
  if (precision < 0 || precision > 300)
    throw Error(fmt::format("rounding to {} digits", precision), "0 to 300");
  const std::string_view method = given.text(1).value_or("common");
  if (method == "common") {
    if (const auto integer = as_int(input)) return *integer;
    return round_half_even(*number, static_cast<int>(precision));
  }
  if (method != "ceil" && method != "floor")
    throw Error(fmt::format("the method '{}' of rounding", method), "common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  return (method == "ceil" ? std::ceil(*number * scale) : std::floor(*number * scale)) / scale;
}

Value default_filter(const Value& input, const Arguments& arguments, Heap& heap) {
  const Parameters given("default", arguments, {"default_value", "boolean"});
  const bool replaced = is_undefined(input) || (given.flag(1, false) && !is_true(input));
  if (!replaced) return input;
  return given.find(0) ? *given.find(0) : heap.text("");
}

}  // namespace

const FilterTable& number_filters() {
  static const FilterTable filters = {
      {"abs", abs_filter},     {"d", default_filter}, {"default", default_filter},
      {"float", float_filter}, {"int", int_filter},   {"round", round_filter},
  };
  return filters;
}

}  // namespace medusa::jinja
