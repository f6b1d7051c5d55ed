// Expressions -> values.
#pragma once

#include "data/chat/jinja/syntax.h"
#include "data/chat/jinja/value.h"

namespace medusa::jinja {

/// One rendering's. @throws Error and Refusal, with their line, from every evaluation.
class Evaluator {
 public:
  explicit Evaluator(Heap& heap) : heap_(heap) {}

  Value evaluate(const Expr& expr, const Scope& scope);
  Value apply(const FilterCall& filter, const Value& input, const Scope& scope);

 private:
  Arguments evaluate(const ArgumentExprs& arguments, const Scope& scope);
  bool holds(Comparison comparison, const Value& left, const Value& right);

  Value eval(const Constant& constant, const Scope& scope);
  Value eval(const Name& name, const Scope& scope);
  Value eval(const SequenceLiteral& literal, const Scope& scope);
  Value eval(const DictLiteral& literal, const Scope& scope);
  Value eval(const Attribute& access, const Scope& scope);
  Value eval(const Subscript& access, const Scope& scope);
  Value eval(const Slice& access, const Scope& scope);
  Value eval(const Unary& unary, const Scope& scope);
  Value eval(const Arithmetic& arithmetic, const Scope& scope);
  Value eval(const Logic& logic, const Scope& scope);
  Value eval(const Compare& compare, const Scope& scope);
  Value eval(const Conditional& conditional, const Scope& scope);
  Value eval(const Call& call, const Scope& scope);
  Value eval(const Filtered& filtered, const Scope& scope);
  Value eval(const Test& test, const Scope& scope);

  Heap& heap_;
};

}  // namespace medusa::jinja
