// Jinja source -> statements, and the expressions in them in Jinja's order of precedence.
#pragma once

#include <string_view>
#include <vector>

#include "data/chat/jinja/lexer.h"
#include "data/chat/jinja/syntax.h"

namespace medusa::jinja {

/// Knows for, if, set, macro, filter, generation, raw, break and continue.
/// @throws Error  with its line: bad syntax, or a statement it does not know.
Body parse(std::string_view source);

/// Reads one expression at a time and leaves the stream behind it.
///
/// Every member throws Error, with its line, where the source is no expression, uses what is not
/// supported (*args, **kwargs), or is larger than any template needs.
class ExpressionParser {
 public:
  explicit ExpressionParser(LexemeStream& stream) : in_(stream) {}

  /// Several expressions with commas make a tuple.
  /// @param with_condition  whether "a if b else c" may stand at the top: not behind 'for … in'.
  ExprPtr tuple(bool with_condition = true);

  /// One expression without commas at the top.
  ExprPtr expression() { return root(&ExpressionParser::conditional); }

  /// | name(arguments) | …, if there is a "|".
  std::vector<FilterCall> filters();

  /// The first filter without its "|", and those behind it.
  std::vector<FilterCall> filter_chain();

 private:
  using Rule = ExprPtr (ExpressionParser::*)();
  struct Operator {
    std::string_view text;
    char operation;
  };

  ExprPtr root(Rule rule);
  template <typename Node>
  ExprPtr make(int line, Node node);

  ExprPtr conditional();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary();
  ExprPtr primary();
  ExprPtr name_or_constant();
  ExprPtr number();
  ExprPtr string();
  ExprPtr parenthesized();
  ExprPtr list();
  ExprPtr dict();

  ExprPtr arithmetic(Rule operand, std::initializer_list<Operator> operators);
  ExprPtr signed_operand();
  ExprPtr postfix(ExprPtr object);
  ExprPtr filtered(ExprPtr input);
  ExprPtr subscript(ExprPtr object);
  ExprPtr test(ExprPtr input);
  FilterCall filter_call();
  ArgumentExprs arguments();
  bool ends_tuple() const;
  bool take_comparison(Comparison& out);

  LexemeStream& in_;
  int nodes_ = 0;  // of the expression being read
  int depth_ = 0;
};

}  // namespace medusa::jinja
