#include "base/json_text.h"

#include <fmt/format.h>

namespace medusa {
namespace {

/// What stands behind the last such part; all of it where there is none.
std::string_view behind_last(std::string_view text, std::string_view part) {
  const size_t at = text.rfind(part);
  return at == std::string_view::npos ? text : text.substr(at + part.size());
}

}  // namespace

std::string json_error_text(std::string_view what) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …"
  if (const size_t end = what.find("] "); what.starts_with("[json.exception.") && end < what.size())
    what.remove_prefix(end + 2);
  constexpr std::string_view kParse = "parse error at ";
  if (what.starts_with(kParse))
    return fmt::format("not JSON at {}",
                       what.substr(kParse.size(), what.find(':') - kParse.size()));
  if (what.starts_with("cannot use "))  // "cannot use at() with array"
    return fmt::format("is {}, not an object", behind_last(what, " with "));
  return std::string(what);
}

}  // namespace medusa
