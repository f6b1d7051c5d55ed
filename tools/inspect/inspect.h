// What a file or folder of ours, or of a model, holds.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace medusa {

/// One object, in the order in which people want to read it: "kind", "path", "summary" (one line),
/// then what the kind has to say. Keys end in their unit where there is one.
/// @throws UserError  of no known kind, or damaged, as the reader of its kind says.
nlohmann::ordered_json inspect(const std::filesystem::path& path);

}  // namespace medusa
