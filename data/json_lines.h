// Reads JSON Lines: a file with one JSON value on each line.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace medusa {

/// What is known of a line besides its value.
struct JsonLine {
  std::string place;  // "<file>:<line>", for messages
  std::string id;     // "<name of the file>:<line>", for what has no id of its own
};

/// Hands over every line that is not blank, first to last; lines count from 1.
/// @throws UserError  the file cannot be read, or a line is not JSON.
void read_json_lines(const std::filesystem::path& file,
                     const std::function<void(const nlohmann::json&, const JsonLine&)>& read);

/// The same for text that was read before.
/// @param file  for messages and ids.
void parse_json_lines(const std::string& text, const std::filesystem::path& file,
                      const std::function<void(const nlohmann::json&, const JsonLine&)>& read);

}  // namespace medusa
