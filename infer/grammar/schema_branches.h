// The types of a JSON schema's values, and whether a value may be of two branches of oneOf.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "infer/grammar/schema_time.h"

namespace medusa {

/// A set of types, a bit each. A number is of one of two: an integer or not.
using JsonTypes = uint32_t;
constexpr JsonTypes kNullType = 1, kBooleanType = 2, kIntegerType = 4, kFractionType = 8,
                    kStringType = 16, kArrayType = 32, kObjectType = 64, kAnyType = 127;

/// @returns  0: there is no such type.
JsonTypes type_named(std::string_view name);

JsonTypes types_of_value(const nlohmann::ordered_json& value);

/// The types that values of a schema may have, as it and those that it leads to name them; all of
/// them where that is not easily told.
/// @param root  whose places references name.
/// @param time  that it may take.
JsonTypes types_of(const nlohmann::ordered_json& root, const nlohmann::ordered_json& schema,
                   const SchemaTime& time);

/// Each value is of one branch alone: the branches have other types, other constants, or are
/// objects told apart by a property that both require, or that one requires and the other forbids.
/// @param branches  a list of schemas.
/// @param place     of the list, as a JSON pointer.
/// @param time      that it may take.
/// @throws UnsupportedSchema  that is not to be seen of two branches.
void expect_one_of_them(const nlohmann::ordered_json& root, const nlohmann::ordered_json& branches,
                        const std::string& place, const SchemaTime& time);

}  // namespace medusa
