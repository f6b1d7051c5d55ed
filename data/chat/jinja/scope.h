// The variables that a statement sees.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// Loops, macros and captured blocks have a scope of their own; 'if' has none. Assignments go to
/// the innermost scope: what a loop sets is gone after the round.
struct Scope {
  const Scope* parent = nullptr;  // where the statement stands in the source; null: outermost
  std::vector<std::pair<std::string_view, Value>> variables;  // names lie in the template

  /// Null: there is none of this name, here or further out.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->parent)
      for (const auto& [each, value] : scope->variables)
        if (each == name) return &value;
    return nullptr;
  }

  void set(std::string_view name, const Value& value) {
    for (auto& [each, old] : variables)
      if (each == name) {
        old = value;
        return;
      }
    variables.emplace_back(name, value);
  }
};

}  // namespace medusa::jinja
