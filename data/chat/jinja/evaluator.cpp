#include "data/chat/jinja/evaluator.h"

#include <fmt/format.h>

#include "data/chat/jinja/access.h"
#include "data/chat/jinja/builtins.h"
#include "data/chat/jinja/error.h"
#include "data/chat/jinja/operators.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

Value Evaluator::evaluate(const Expr& expr, const Scope& scope) {
  try {
    const Descent descent(heap_);
    heap_.step();
    return std::visit([&](const auto& node) { return eval(node, scope); }, expr.node);
  } catch (Located& problem) {
    if (problem.line == 0) problem.line = expr.line;
    throw;
  }
}

Arguments Evaluator::evaluate(const ArgumentExprs& arguments, const Scope& scope) {
  Arguments out;
  for (const ExprPtr& expr : arguments.positional) out.positional.push_back(evaluate(*expr, scope));
  for (const auto& [name, expr] : arguments.named)
    out.named.emplace_back(name, evaluate(*expr, scope));
  return out;
}

Value Evaluator::eval(const Constant& constant, const Scope&) { return constant.value; }

Value Evaluator::eval(const Name& name, const Scope& scope) {
  if (const Value* value = scope.find(name.name)) return *value;
  return heap_.undefined(fmt::format("the undefined variable '{}'", name.name));
}

Value Evaluator::eval(const SequenceLiteral& literal, const Scope& scope) {
  std::vector<Value> items;
  for (const ExprPtr& item : literal.items) items.push_back(evaluate(*item, scope));
  return heap_.sequence(literal.kind, std::move(items));
}

Value Evaluator::eval(const DictLiteral& literal, const Scope& scope) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : literal.entries) {
    const Value evaluated = evaluate(*key, scope);
    entries.emplace_back(evaluated, evaluate(*value, scope));
  }
  return heap_.dict(entries);
}

Value Evaluator::eval(const Attribute& access, const Scope& scope) {
  return attribute(evaluate(*access.object, scope), access.name, heap_);
}

Value Evaluator::eval(const Subscript& access, const Scope& scope) {
  const Value object = evaluate(*access.object, scope);
  return subscript(object, evaluate(*access.key, scope), heap_);
}

Value Evaluator::eval(const Slice& access, const Scope& scope) {
  const Value object = evaluate(*access.object, scope);
  const auto bound = [&](const ExprPtr& expr) -> std::optional<int64_t> {
    const Value value = expr ? evaluate(*expr, scope) : None{};
    if (is_none(value)) return std::nullopt;
    if (const auto index = as_int(value)) return *index;
    throw Error(fmt::format("a slice up to {}", describe(value)), "an integer");
  };
  SliceBounds bounds;
  bounds.start = bound(access.start);
  bounds.stop = bound(access.stop);
  bounds.step = bound(access.step).value_or(1);
  return slice(object, bounds, heap_);
}

Value Evaluator::eval(const Unary& unary, const Scope& scope) {
  const Value value = evaluate(*unary.operand, scope);
  if (unary.operation == Unary::Operation::Not) return !is_true(value);
  return apply_sign(unary.operation == Unary::Operation::Negative, value);
}

Value Evaluator::eval(const Arithmetic& arithmetic, const Scope& scope) {
  const Value left = evaluate(*arithmetic.left, scope);
  const Value right = evaluate(*arithmetic.right, scope);
  return apply_operator(arithmetic.operation, left, right, heap_);
}

Value Evaluator::eval(const Logic& logic, const Scope& scope) {
  const Value left = evaluate(*logic.left, scope);
  return is_true(left) == logic.is_and ? evaluate(*logic.right, scope) : left;
}

bool Evaluator::holds(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::Equal:
      return equal(left, right, heap_);
    case Comparison::NotEqual:
      return !equal(left, right, heap_);
    case Comparison::Less:
      return less(left, right, heap_);
    case Comparison::LessEqual:
      return less(left, right, heap_) || equal(left, right, heap_);
    case Comparison::Greater:
      return less(right, left, heap_);
    case Comparison::GreaterEqual:
      return less(right, left, heap_) || equal(left, right, heap_);
    case Comparison::In:
      return contains(right, left, heap_);
    case Comparison::NotIn:
      return !contains(right, left, heap_);
  }
  return false;
}

Value Evaluator::eval(const Compare& compare, const Scope& scope) {
  Value left = evaluate(*compare.first, scope);
  for (const auto& [comparison, expr] : compare.rest) {
    const Value right = evaluate(*expr, scope);
    if (!holds(comparison, left, right)) return false;
    left = right;
  }
  return true;
}

Value Evaluator::eval(const Conditional& conditional, const Scope& scope) {
  if (is_true(evaluate(*conditional.condition, scope))) return evaluate(*conditional.then, scope);
  if (conditional.otherwise) return evaluate(*conditional.otherwise, scope);
  return heap_.undefined("an 'if' without 'else' whose condition is false");
}

Value Evaluator::eval(const Call& call, const Scope& scope) {
  const Value callee = evaluate(*call.callee, scope);
  const auto* function = std::get_if<const Function*>(&callee);
  if (!function)
    throw Error(fmt::format("{} is called", describe(callee)), "a function or a macro");
  const Arguments arguments = evaluate(call.arguments, scope);
  return (*function)->call(arguments);
}

Value Evaluator::apply(const FilterCall& filter, const Value& input, const Scope& scope) {
  return apply_filter(filter.name, input, evaluate(filter.arguments, scope), heap_);
}

Value Evaluator::eval(const Filtered& filtered, const Scope& scope) {
  return apply(filtered.filter, evaluate(*filtered.input, scope), scope);
}

Value Evaluator::eval(const Test& test, const Scope& scope) {
  const Value input = evaluate(*test.input, scope);
  return apply_test(test.name, input, evaluate(test.arguments, scope), heap_);
}

}  // namespace medusa::jinja
