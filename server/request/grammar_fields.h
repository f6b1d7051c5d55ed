// The fields of a request that hold its answer inside a grammar.
#pragma once

#include <optional>
#include <string>

#include "infer/grammar/grammar.h"
#include "server/request/request_fields.h"

namespace medusa {

struct WantedGrammar {
  GrammarText grammar;
  std::string field;  // that asks for it, for errors
};

/// Reads a format: text, json_object, or json_schema with its schema.
/// @param field   that the format is.
/// @param holder  of the schema: the format itself, or an object in it.
/// @param place   of that holder in the body, as a JSON pointer.
/// @throws ApiError  400: it is wrong.
std::optional<WantedGrammar> read_format(RequestFields& format, const std::string& field,
                                         RequestFields& holder, OrderedBody& body,
                                         const std::string& place);

/// Reads response_format.
/// @param body  the order of a schema's keys is the order of the answer's.
/// @throws ApiError  400: it is wrong.
std::optional<WantedGrammar> read_response_format(RequestFields& fields, OrderedBody& body);

/// @param field  that asks for it.
WantedGrammar any_json_object(const std::string& field);

/// A schema that an answer follows.
/// @param holder  of it, in the field schema.
/// @param place   of that holder in the body, as a JSON pointer.
/// @throws ApiError  400: it is none, or too long.
WantedGrammar read_schema(RequestFields& holder, OrderedBody& body, const std::string& place);

/// Reads regex and grammar of the object medusa.
/// @param format  that the API's own fields ask for; returned where there is none of these.
/// @throws ApiError  400: one of them is wrong, or there are several.
std::optional<WantedGrammar> read_own_grammar(RequestFields& own,
                                              std::optional<WantedGrammar> format);

/// @throws ApiError  400: its text is too long, since some take very long to compile.
void expect_short(const WantedGrammar& wanted);

}  // namespace medusa
