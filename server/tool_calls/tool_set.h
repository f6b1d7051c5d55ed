// The tools of a request, and the grammar that they give its answer.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/request/grammar_fields.h"

namespace medusa {

/// A function that an answer may ask its client to call.
struct ToolFunction {
  std::string name;
  std::string description;            // empty: none
  nlohmann::ordered_json parameters;  // the schema of its arguments; null: any object
  bool strict = false;                // its arguments must be of that schema
};

enum class ToolUse {
  None,      // no call is read, and the model sees no tools
  Auto,      // the model chooses between text and calls
  Required,  // the answer is made of calls
};

struct ToolSet {
  std::vector<ToolFunction> functions;
  nlohmann::ordered_json declared = nlohmann::ordered_json::array();  // as the model's template
                                                                      // sees them, in OpenAI's form
  ToolUse use = ToolUse::Auto;
  std::string only;      // of Required: the function that is called, once; empty: any
  bool parallel = true;  // an answer may have several calls

  bool may_call() const { return use != ToolUse::None && !functions.empty(); }
  /// Gives the declaration for ChatTemplate::encode().
  std::string declaration() const;
};

/// Adds a function, and declares it.
/// @param fields  of the object that describes it, for errors.
/// @throws ApiError  400: its name is none, or there twice.
void add_tool(ToolSet& tools, ToolFunction function, const RequestFields& fields);

/// Gives the grammar that keeps an answer with calls in its form: required calls, strict functions,
/// one call at most, and a text of another format where the model does not call. Nothing: any text
/// will do.
/// @param format    that the answer has where it makes no calls.
/// @param warnings  names the functions whose schema a grammar cannot hold: unless such a function
///                  is strict, its arguments may be any object; and a format beside required calls.
/// @throws ApiError  400: both do not go together, or a strict function has such a schema.
std::optional<WantedGrammar> grammar_with_tools(const ToolSet& tools,
                                                std::optional<WantedGrammar> format,
                                                std::vector<std::string>& warnings);

}  // namespace medusa
