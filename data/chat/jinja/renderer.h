// Statements -> text.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "data/chat/jinja/evaluator.h"
#include "data/chat/jinja/syntax.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// Runs a template once. @throws Error and Refusal, with their line.
class Renderer {
 public:
  explicit Renderer(Heap& heap) : heap_(heap), evaluator_(heap) {}

  /// @param globals  functions and the caller's variables; must outlive this object.
  std::string render(const Body& body, const Scope& globals);

 private:
  enum class Flow { Next, Break, Continue };  // what a statement wants of the loop around it

  Flow run(const Body& body, Scope& scope);
  Flow exec(const Output& output, Scope& scope);
  Flow exec(const Print& statement, Scope& scope);
  Flow exec(const If& statement, Scope& scope);
  Flow exec(const For& statement, Scope& scope);
  Flow exec(const Set& statement, Scope& scope);
  Flow exec(const SetBlock& statement, Scope& scope);
  Flow exec(const Macro& statement, Scope& scope);
  Flow exec(const FilterBlock& statement, Scope& scope);
  Flow exec(const Generation& statement, Scope& scope);
  Flow exec(const Break&, Scope&) { return Flow::Break; }
  Flow exec(const Continue&, Scope&) { return Flow::Continue; }

  std::vector<Value> loop_items(const For& statement, const Scope& scope);
  Value call_macro(const Macro& macro, const Scope& defined_in, const Arguments& arguments);
  Value capture(const Body& body, Scope& scope);
  Value filtered(const std::vector<FilterCall>& filters, Value input, const Scope& scope);
  void assign(const Target& target, const Value& value, Scope& scope);
  void write(const std::string& text);
  Scope& inner_scope(const Scope& parent);

  Heap& heap_;
  Evaluator evaluator_;
  std::string* out_ = nullptr;
  std::deque<Scope> scopes_;  // all live to the end: macros may refer to theirs
};

}  // namespace medusa::jinja
