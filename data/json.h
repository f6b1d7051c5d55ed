// JSON that somebody else wrote: files, values by their keys, and JSON Lines. For .cpp files only:
// it includes the library.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"

namespace medusa {

using Json = nlohmann::json;

/// A whole file. @throws UserError  it cannot be read or is not JSON.
Json read_json_file(const std::filesystem::path& path);

/// The same for text that was read before.
/// @param file  for messages.
Json parse_json_text(const std::string& text, const std::filesystem::path& file);

/// Whether a text without a name to tell by is one list, not JSON Lines of which each is a list: it
/// begins with '[', and its first line is all of it or no JSON by itself.
bool is_json_list(const std::string& text);

/// Whether it is a whole number that T holds. get<T>() would convert 1.9, true and 2^64 - 1.
template <typename T, typename Value>
bool is_integer(const Value& value) {
  if (value.is_number_unsigned()) return std::in_range<T>(value.template get<uint64_t>());
  return value.is_number_integer() && std::in_range<T>(value.template get<int64_t>());
}

/// The value of a key as T: std::string, bool, an integer or a list of int64_t, or Json itself for
/// anything; nullopt if the key is missing or null.
/// @param source  file, and path of the object inside it: "tokenizer.json: model".
/// @throws UserError  it has another type, or is a number beyond T.
template <typename T, typename Object>
std::optional<T> find_json(const Object& object, const char* key, const std::string& source) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  bool matches = true;
  const char* expected = "a value";
  bool is_number = false;  // or several: then the value says more than its type
  if constexpr (std::is_same_v<T, std::string>) {
    matches = found->is_string();
    expected = "a string";
  } else if constexpr (std::is_same_v<T, bool>) {
    matches = found->is_boolean();
    expected = "true or false";
  } else if constexpr (std::is_integral_v<T>) {
    matches = is_integer<T>(*found);
    is_number = found->is_number();
    expected = sizeof(T) == 8 ? "an integer" : "an integer of 32 bits";
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    matches = found->is_array() && std::ranges::all_of(*found, is_integer<int64_t, Object>);
    is_number = found->is_array();
    expected = "a list of integers";
  }
  if (!matches)
    throw UserError(
        fmt::format("{}: '{}' is {}, expected {}; correct it or download the file again", source,
                    key, is_number ? json_text(*found) : found->type_name(), expected));
  return found->template get<T>();
}

/// The same for a key that must be there.
template <typename T, typename Object>
T need_json(const Object& object, const char* key, const std::string& source) {
  if (auto value = find_json<T>(object, key, source)) return *std::move(value);
  throw UserError(fmt::format(
      "{}: has no '{}', which is needed; correct it or download the file again", source, key));
}

/// What is known of a line besides its value.
struct JsonLine {
  std::string place;  // "<file>:<line>", for messages
  std::string id;     // "<name of the file>:<line>", for what has no id of its own
};

/// The 'id' of an entry, as text: a string is itself, another value its JSON.
/// @param fallback  for an entry without one.
/// @throws UserError  longer than 1,024 bytes (a dataset gives every id the longest one's space),
///                    or with a zero byte (which ends an id there).
std::string entry_id(const nlohmann::json& entry, const std::string& place,
                     const std::string& fallback);

/// Hands over every line that is not blank, first to last; lines count from 1.
/// @throws UserError  the file cannot be read, or a line is not JSON.
void read_json_lines(const std::filesystem::path& file,
                     const std::function<void(const nlohmann::json&, const JsonLine&)>& read);

/// The same for text that was read before.
/// @param file  for messages and ids.
void parse_json_lines(const std::string& text, const std::filesystem::path& file,
                      const std::function<void(const nlohmann::json&, const JsonLine&)>& read);

}  // namespace medusa
