// How a JSON schema is refused: with what was found, and its place as a JSON pointer.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "infer/grammar/json_schema.h"

namespace medusa {

inline std::string shown_place(const std::string& place) {
  return place.empty() ? "its root" : fmt::format("{:?}", place);
}

/// For what is no JSON schema.
[[noreturn]] inline void refuse_no_schema(const std::string& place, std::string_view found,
                                          std::string_view expected) {
  throw UserError(fmt::format("the JSON schema has {} at {}, expected {}; correct it", found,
                              shown_place(place), expected));
}

/// For a schema that says what no grammar of ours can hold.
[[noreturn]] inline void refuse_schema(const std::string& place, std::string_view found,
                                       std::string_view expected) {
  throw UnsupportedSchema(fmt::format("the JSON schema has {} at {}, expected {}; correct it",
                                      found, shown_place(place), expected));
}

[[noreturn]] inline void refuse_keyword(const std::string& place, std::string_view keyword) {
  throw UnsupportedSchema(
      fmt::format("the JSON schema has {} at {}, expected keywords that a grammar can hold there; "
                  "leave it out, or say it in another way",
                  keyword, shown_place(place)));
}

}  // namespace medusa
