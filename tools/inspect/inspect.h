// What a file or folder of ours, or of a model, holds.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace medusa {

/// One object, in the order in which people want to read it: "kind", "path", "summary" (one line),
/// then what the kind has to say. Keys end in their unit where there is one.
/// @throws UserError  of no known kind, or damaged, as the reader of its kind says.
nlohmann::ordered_json inspect(const std::filesystem::path& path);

// A description made by inspect() as aligned text for a terminal.

/// Single values stand in one column, objects as indented groups, lists of objects as tables, texts
/// of several lines as indented blocks. Long tables are cut and say so; the JSON has every row.
std::string inspection_text(const nlohmann::ordered_json& inspection);

}  // namespace medusa
