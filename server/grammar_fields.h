// The fields of a request that hold its answer inside a grammar.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "infer/grammar/grammar.h"
#include "server/request_fields.h"

namespace medusa {

struct WantedGrammar {
  GrammarText grammar;
  std::string field;  // that asks for it, for errors
};

/// Reads response_format, and of the object medusa regex and grammar.
/// @param own   the object medusa; null: the request has none.
/// @param body  the request's own text: the order of a schema's keys is the order of the answer's.
/// @throws ApiError  400: one of them is wrong, or there are several.
std::optional<WantedGrammar> read_grammar_fields(RequestFields& fields, RequestFields* own,
                                                 std::string_view body);

/// @throws ApiError  400: its text is too long, since some take very long to compile.
void expect_short(const WantedGrammar& wanted);

}  // namespace medusa
