// The part of JSON Schema that the grammar library follows to the letter.
#pragma once

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "infer/grammar/schema_time.h"

namespace medusa {

/// A schema that says what no grammar of ours can hold.
class UnsupportedSchema : public UserError {
 public:
  using UserError::UserError;
};

/// Refuses a schema of which the grammar library would leave something out: every text of the
/// grammar must be valid under the schema, as draft 2020-12 and draft 7 read it. The grammar may
/// have fewer texts: objects hold the properties that the schema names, and no others unless
/// additionalProperties allows them, and keys come in the schema's order.
/// @param time  that reading it may take.
/// @returns  a schema of the same texts that the library reads as it is meant.
/// @throws UnsupportedSchema  names the keyword and its place, as a JSON pointer.
/// @throws UserError          it is no schema, or takes too long.
nlohmann::ordered_json supported_schema(const nlohmann::ordered_json& schema,
                                        const SchemaTime& time = {});

}  // namespace medusa
