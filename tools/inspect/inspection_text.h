// A description made by inspect() as aligned text for a terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace medusa {

/// Single values stand in one column, objects as indented groups, lists of objects as tables, texts
/// of several lines as indented blocks. Long tables are cut and say so; the JSON has every row.
std::string inspection_text(const nlohmann::ordered_json& inspection);

}  // namespace medusa
