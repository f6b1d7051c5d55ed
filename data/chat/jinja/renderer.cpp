#include "data/chat/jinja/renderer.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/chat/jinja/access.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/print.h"

namespace medusa::jinja {

std::string Renderer::render(const Body& body, const Scope& globals) {
  std::string text;
  out_ = &text;
  run(body, inner_scope(globals));
  return text;
}

Scope& Renderer::inner_scope(const Scope& parent) {
  heap_.take(sizeof(Scope));
  return scopes_.emplace_back(Scope{&parent, {}});
}

void Renderer::write(const std::string& text) {
  heap_.take(text.size());
  *out_ += text;
}

Renderer::Flow Renderer::run(const Body& body, Scope& scope) {
  for (const Statement& statement : body) {
    try {
      const Descent descent(heap_);
      heap_.step();
      const Flow flow =
          std::visit([&](const auto& node) { return exec(node, scope); }, statement.node);
      if (flow != Flow::Next) return flow;
    } catch (Located& problem) {
      if (problem.line == 0) problem.line = statement.line;
      throw;
    }
  }
  return Flow::Next;
}

Renderer::Flow Renderer::exec(const Output& output, Scope&) {
  write(output.text);
  return Flow::Next;
}

Renderer::Flow Renderer::exec(const Print& statement, Scope& scope) {
  write(print(evaluator_.evaluate(*statement.value, scope), heap_));
  return Flow::Next;
}

Renderer::Flow Renderer::exec(const If& statement, Scope& scope) {
  for (const auto& [condition, body] : statement.branches)
    if (is_true(evaluator_.evaluate(*condition, scope))) return run(body, scope);
  return run(statement.otherwise, scope);
}

/// Elements that the loop's condition lets through.
std::vector<Value> Renderer::loop_items(const For& statement, const Scope& scope) {
  std::vector<Value> items = iterate(evaluator_.evaluate(*statement.iterable, scope), heap_);
  if (!statement.condition) return items;
  std::vector<Value> kept;
  for (const Value& item : items) {
    Scope& own = inner_scope(scope);
    assign(statement.target, item, own);
    if (is_true(evaluator_.evaluate(*statement.condition, own))) kept.push_back(item);
  }
  return kept;
}

Renderer::Flow Renderer::exec(const For& statement, Scope& scope) {
  const Value held = heap_.list(loop_items(statement, scope));
  const std::vector<Value>& items = as_sequence(held)->items;
  for (size_t i = 0; i < items.size(); ++i) {
    Scope& own = inner_scope(scope);
    own.set("loop", heap_.loop({&items, i}));
    assign(statement.target, items[i], own);
    if (run(statement.body, own) == Flow::Break) break;
  }
  if (items.empty()) return run(statement.otherwise, inner_scope(scope));
  return Flow::Next;
}

void Renderer::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.parts.empty()) {
    const std::vector<Value> items = iterate(value, heap_);
    if (items.size() != target.parts.size())
      throw Error(fmt::format("{} values for {} variables", items.size(), target.parts.size()),
                  "as many");
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
    return;
  }
  if (target.attribute.empty()) return scope.set(target.name, value);
  const Value* object = scope.find(target.name);
  auto* const* space = object ? std::get_if<Namespace*>(object) : nullptr;
  if (!space)
    throw Error(fmt::format("an assignment to an attribute of '{}'", target.name),
                "a namespace: nothing else can be changed");
  auto& attributes = (*space)->attributes;
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& each) { return each.first == target.attribute; });
  if (found != attributes.end()) {
    found->second = value;
  } else {
    heap_.take(sizeof(attributes[0]) + target.attribute.size());
    attributes.emplace_back(target.attribute, value);
  }
}

Renderer::Flow Renderer::exec(const Set& statement, Scope& scope) {
  assign(statement.target, evaluator_.evaluate(*statement.value, scope), scope);
  return Flow::Next;
}

/// What the body writes, as a text.
Value Renderer::capture(const Body& body, Scope& scope) {
  std::string text;
  std::string* const outside = std::exchange(out_, &text);
  run(body, scope);
  out_ = outside;  // after an exception nothing is written any more
  return heap_.text(std::move(text));
}

Value Renderer::filtered(const std::vector<FilterCall>& filters, Value input, const Scope& scope) {
  for (const FilterCall& filter : filters) input = evaluator_.apply(filter, input, scope);
  return input;
}

Renderer::Flow Renderer::exec(const SetBlock& statement, Scope& scope) {
  const Value text = capture(statement.body, inner_scope(scope));
  assign(statement.target, filtered(statement.filters, text, scope), scope);
  return Flow::Next;
}

Renderer::Flow Renderer::exec(const FilterBlock& statement, Scope& scope) {
  Scope& own = inner_scope(scope);
  write(print(filtered(statement.filters, capture(statement.body, own), own), heap_));
  return Flow::Next;
}

Renderer::Flow Renderer::exec(const Generation& statement, Scope& scope) {
  return run(statement.body, inner_scope(scope));
}

Renderer::Flow Renderer::exec(const Macro& statement, Scope& scope) {
  scope.set(statement.name,
            heap_.function(statement.name, [this, &statement, &scope](const Arguments& arguments) {
              return call_macro(statement, scope, arguments);
            }));
  return Flow::Next;
}

/// Parameters that are not given take their default, which may refer to those before, or are
/// undefined.
Value Renderer::call_macro(const Macro& macro, const Scope& defined_in,
                           const Arguments& arguments) {
  Scope& own = inner_scope(defined_in);
  if (arguments.positional.size() > macro.parameters.size())
    throw Error(
        fmt::format("the macro '{}' has {} arguments", macro.name, arguments.positional.size()),
        fmt::format("at most {}", macro.parameters.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    own.set(macro.parameters[i].first, arguments.positional[i]);
  for (const auto& [name, value] : arguments.named) {
    const auto parameter =
        std::find_if(macro.parameters.begin(), macro.parameters.end(),
                     [&, &wanted = name](const auto& each) { return each.first == wanted; });
    if (parameter == macro.parameters.end() ||
        static_cast<size_t>(parameter - macro.parameters.begin()) < arguments.positional.size())
      throw Error(fmt::format("the macro '{}' has an argument '{}'", macro.name, name),
                  "another name, and each once");
    own.set(parameter->first, value);
  }
  for (const auto& [name, otherwise] : macro.parameters) {
    const bool given =
        std::any_of(own.variables.begin(), own.variables.end(),
                    [&, &wanted = name](const auto& each) { return each.first == wanted; });
    if (given) continue;
    own.set(name, otherwise ? evaluator_.evaluate(*otherwise, own)
                            : heap_.undefined(fmt::format("the parameter '{}' of '{}', not given",
                                                          name, macro.name)));
  }
  return capture(macro.body, own);
}

}  // namespace medusa::jinja
