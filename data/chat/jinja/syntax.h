// What a template is once it is parsed: statements, and expressions in them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/chat/jinja/value.h"

namespace medusa::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct ArgumentExprs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

/// A text owns what its value points to.
struct Constant {
  Value value;
  std::unique_ptr<const Text> text;
};

struct Name {
  std::string name;
};

struct SequenceLiteral {  // [a, b] and (a, b)
  Sequence::Kind kind;
  std::vector<ExprPtr> items;
};

struct DictLiteral {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct Attribute {  // object.name
  ExprPtr object;
  std::string name;
};

struct Subscript {  // object[key]
  ExprPtr object;
  ExprPtr key;
};

struct Slice {  // object[start:stop:step], each may be null
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};

struct Unary {
  enum class Operation { Not, Negative, Positive };
  Operation operation;
  ExprPtr operand;
};

struct Arithmetic {
  char operation;  // + - * / % ~; 'd' for "//", '^' for "**"
  ExprPtr left;
  ExprPtr right;
};

struct Logic {  // the value of one of them, as in Python
  bool is_and;
  ExprPtr left;
  ExprPtr right;
};

enum class Comparison { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

struct Compare {  // a < b < c: each neighbor is compared
  ExprPtr first;
  std::vector<std::pair<Comparison, ExprPtr>> rest;
};

struct Conditional {  // then if condition else otherwise
  ExprPtr condition;
  ExprPtr then;
  ExprPtr otherwise;  // null: undefined
};

struct Call {
  ExprPtr callee;
  ArgumentExprs arguments;
};

struct FilterCall {
  std::string name;
  ArgumentExprs arguments;
};

struct Filtered {  // input|name(arguments)
  ExprPtr input;
  FilterCall filter;
};

struct Test {  // input is [not] name(arguments)
  ExprPtr input;
  std::string name;
  ArgumentExprs arguments;
};

struct Expr {
  int line;
  std::variant<Constant, Name, SequenceLiteral, DictLiteral, Attribute, Subscript, Slice, Unary,
               Arithmetic, Logic, Compare, Conditional, Call, Filtered, Test>
      node;
};

struct Statement;
using Body = std::vector<Statement>;

/// What is assigned to: a name, an attribute of a namespace, or several of them.
struct Target {
  std::string name;           // empty: parts
  std::string attribute;      // empty: the name itself
  std::vector<Target> parts;  // of (a, b)
};

struct Output {
  std::string text;
};

struct Print {  // {{ value }}
  ExprPtr value;
};

struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;  // if, elif, …
  Body otherwise;
};

struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // which elements count; null: all
  Body body;
  Body otherwise;  // runs if there was no round
};

struct Set {
  Target target;
  ExprPtr value;
};

struct SetBlock {  // {% set target | filters %} body {% endset %}
  Target target;
  std::vector<FilterCall> filters;
  Body body;
};

struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExprPtr>> parameters;  // null: no default
  Body body;
};

struct FilterBlock {
  std::vector<FilterCall> filters;
  Body body;
};

struct Generation {  // marks what the model wrote; transformers' own tag
  Body body;
};

struct Break {};
struct Continue {};

struct Statement {
  int line;
  std::variant<Output, Print, If, For, Set, SetBlock, Macro, FilterBlock, Generation, Break,
               Continue>
      node;
};

}  // namespace medusa::jinja
