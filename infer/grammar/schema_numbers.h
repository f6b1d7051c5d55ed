// The numbers of a JSON schema that the grammar library holds without rounding them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace medusa {

/// Refuses keywords of a schema of numbers beyond what the library holds: it writes numbers between
/// bounds with six decimals.
/// @param place  of the schema, as a JSON pointer.
/// @throws UnsupportedSchema, UserError  as supported_schema() does.
void expect_supported_number(const nlohmann::ordered_json& schema, const std::string& place);

/// The same for integers.
void expect_supported_integer(const nlohmann::ordered_json& schema, const std::string& place);

/// Whether a number in a constant has lost digits, or would in the library.
bool has_long_numbers(const nlohmann::ordered_json& value);

}  // namespace medusa
