#include "infer/grammar/schema_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json_text.h"
#include "infer/grammar/schema_refusals.h"

namespace medusa {
namespace {

using nlohmann::ordered_json;

constexpr double kLargestExact = 9007199254740991;  // 2^53 - 1: integers up to it are doubles
// Bounds up to this are exact in units of the last decimal.
constexpr double kUnitsOfDecimals = 1e6, kLargestWithDecimals = 1e9;
// The library's own limits; past them it leaves multipleOf out.
constexpr double kLargestMultipleOf = 1024, kWidestMultiples = 5000;

/// What bounds leave.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity(), most = -least;
  double first = least, last = most;  // that may come, in units: exclusive bounds are one away
};

/// @param units  in 1; bounds are whole numbers of them.
Bounds read_bounds(const ordered_json& schema, const std::string& place, double units,
                   double largest, const std::string& expected) {
  Bounds out;
  for (const std::string_view word :
       {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    if (!schema.contains(word)) continue;
    const ordered_json& value = schema.at(word);
    const std::string below = fmt::format("{}/{}", place, word);
    if (!value.is_number()) refuse_no_schema(below, "no number", "a number");
    const auto number = value.get<double>();
    const double scaled = number * units, whole = std::round(scaled);
    if (std::abs(number) > largest || std::abs(scaled - whole) > 1e-3)
      refuse_schema(below, json_text(value), expected);
    const double away = word.starts_with("exclusive") ? 1 : 0;
    if (word.ends_with("inimum")) {
      out.least = std::max(out.least, number);
      out.first = std::max(out.first, whole + away);
    } else {
      out.most = std::min(out.most, number);
      out.last = std::min(out.last, whole - away);
    }
  }
  if (out.first > out.last)
    refuse_schema(place, "bounds that leave no number", "room for " + expected);
  return out;
}

}  // namespace

void expect_supported_number(const ordered_json& schema, const std::string& place) {
  if (schema.contains("multipleOf"))
    refuse_keyword(place, "multipleOf of numbers that are no integers");
  read_bounds(schema, place, kUnitsOfDecimals, kLargestWithDecimals,
              "a number of at most 6 decimals between -1e9 and 1e9");
}

void expect_supported_integer(const ordered_json& schema, const std::string& place) {
  const Bounds bounds = read_bounds(schema, place, 1, kLargestExact,
                                    "an integer between -2^53 and 2^53, both left out");
  if (!schema.contains("multipleOf")) return;
  const std::string below = place + "/multipleOf";
  if (!schema["multipleOf"].is_number()) refuse_no_schema(below, "no number", "a number");
  const auto multiple = schema["multipleOf"].get<double>();
  if (std::floor(multiple) < multiple || multiple < 1 || multiple > kLargestMultipleOf)
    refuse_schema(below, json_text(schema["multipleOf"]),
                  fmt::format("an integer from 1 to {}", kLargestMultipleOf));
  const bool is_open = std::isinf(bounds.least) && std::isinf(bounds.most);
  if (is_open) return;
  if (!(bounds.most - bounds.least <= kWidestMultiples))
    refuse_keyword(place,
                   fmt::format("multipleOf beside bounds that are not both there or more than {} "
                               "apart",
                               kWidestMultiples));
  if (std::floor(bounds.last / multiple) * multiple < bounds.first)
    refuse_schema(place, "bounds that leave no multiple", "room for one");
}

bool has_long_numbers(const ordered_json& value) {
  if (value.is_structured()) return std::any_of(value.begin(), value.end(), has_long_numbers);
  if (value.is_number_unsigned())
    return value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return value.is_number_float() && std::abs(value.get<double>()) > kLargestExact;
}

}  // namespace medusa
