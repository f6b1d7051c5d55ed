#include <charconv>

#include "data/chat/jinja/parser.h"
#include "data/chat/jinja/print.h"

namespace medusa::jinja {
namespace {

// Bounds on the recursion of whoever walks the tree. Published templates stay below 100 and 20.
constexpr int kMaxNodes = 2000;
constexpr int kMaxExpressionDepth = 100;

using Kind = Lexeme::Kind;

std::unique_ptr<const Text> make_text(std::string text) {
  return std::make_unique<const Text>(Text{std::move(text)});
}

}  // namespace

template <typename Node>
ExprPtr ExpressionParser::make(int line, Node node) {
  if (++nodes_ > kMaxNodes)
    throw Error(fmt::format("an expression of more than {} parts", kMaxNodes),
                "several smaller ones", line);
  return std::make_unique<Expr>(Expr{line, std::move(node)});
}

/// Where an expression begins, at the top or within another one's brackets.
ExprPtr ExpressionParser::root(Rule rule) {
  if (depth_ == 0) nodes_ = 0;
  if (depth_ == kMaxExpressionDepth)
    throw Error(fmt::format("an expression nested deeper than {} levels", kMaxExpressionDepth),
                "fewer brackets", in_.line());
  ++depth_;
  ExprPtr out = (this->*rule)();
  --depth_;
  return out;
}

bool ExpressionParser::ends_tuple() const {
  return in_.at(Kind::PrintEnd) || in_.at(Kind::BlockEnd) || in_.at_operator(")");
}

ExprPtr ExpressionParser::tuple(bool with_condition) {
  const Rule rule =
      with_condition ? &ExpressionParser::conditional : &ExpressionParser::disjunction;
  const int line = in_.line();
  ExprPtr first = root(rule);
  if (!in_.at_operator(",")) return first;
  SequenceLiteral out{Sequence::Kind::Tuple, {}};
  out.items.push_back(std::move(first));
  while (in_.take_operator(",") && !ends_tuple()) out.items.push_back(root(rule));
  return make(line, std::move(out));
}

ExprPtr ExpressionParser::conditional() {
  const int line = in_.line();
  ExprPtr value = disjunction();
  while (in_.take_name("if")) {
    ExprPtr condition = disjunction();
    ExprPtr otherwise = in_.take_name("else") ? root(&ExpressionParser::conditional) : ExprPtr();
    value = make(line, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExprPtr ExpressionParser::disjunction() {
  const int line = in_.line();
  ExprPtr left = conjunction();
  while (in_.take_name("or")) left = make(line, Logic{false, std::move(left), conjunction()});
  return left;
}

ExprPtr ExpressionParser::conjunction() {
  const int line = in_.line();
  ExprPtr left = negation();
  while (in_.take_name("and")) left = make(line, Logic{true, std::move(left), negation()});
  return left;
}

ExprPtr ExpressionParser::negation() {
  const int line = in_.line();
  if (!in_.take_name("not")) return comparison();
  return make(line, Unary{Unary::Operation::Not, root(&ExpressionParser::negation)});
}

bool ExpressionParser::take_comparison(Comparison& out) {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::Equal},     {"!=", Comparison::NotEqual}, {"<", Comparison::Less},
      {"<=", Comparison::LessEqual}, {">", Comparison::Greater},   {">=", Comparison::GreaterEqual},
  };
  for (const auto& [text, comparison] : kOperators)
    if (in_.take_operator(text)) return out = comparison, true;
  if (in_.take_name("in")) return out = Comparison::In, true;
  if (!in_.at_name("not") || !in_.peek(1).is(Kind::Name, "in")) return false;
  in_.take();
  in_.take();
  return out = Comparison::NotIn, true;
}

ExprPtr ExpressionParser::comparison() {
  const int line = in_.line();
  Compare out{sum(), {}};
  for (Comparison comparison{}; take_comparison(comparison);)
    out.rest.emplace_back(comparison, sum());
  return out.rest.empty() ? std::move(out.first) : make(line, std::move(out));
}

ExprPtr ExpressionParser::arithmetic(Rule operand, std::initializer_list<Operator> operators) {
  ExprPtr left = (this->*operand)();
  for (bool found = true; found;) {
    found = false;
    for (const auto& [text, operation] : operators) {
      const int line = in_.line();
      if (!in_.take_operator(text)) continue;
      left = make(line, Arithmetic{operation, std::move(left), (this->*operand)()});
      found = true;
    }
  }
  return left;
}

ExprPtr ExpressionParser::sum() {
  return arithmetic(&ExpressionParser::concatenation, {{"+", '+'}, {"-", '-'}});
}

ExprPtr ExpressionParser::concatenation() {
  return arithmetic(&ExpressionParser::product, {{"~", '~'}});
}

ExprPtr ExpressionParser::product() {
  return arithmetic(&ExpressionParser::power, {{"*", '*'}, {"/", '/'}, {"//", 'd'}, {"%", '%'}});
}

ExprPtr ExpressionParser::power() {  // from left to right, unlike Python
  return arithmetic(&ExpressionParser::unary, {{"**", '^'}});
}

ExprPtr ExpressionParser::unary() { return filtered(signed_operand()); }

/// A sign binds weaker than calls and subscripts, but stronger than filters.
ExprPtr ExpressionParser::signed_operand() {
  const int line = in_.line();
  const bool minus = in_.at_operator("-");
  if (!minus && !in_.at_operator("+")) return postfix(primary());
  in_.take();
  const auto operation = minus ? Unary::Operation::Negative : Unary::Operation::Positive;
  return postfix(make(line, Unary{operation, root(&ExpressionParser::signed_operand)}));
}

ExprPtr ExpressionParser::primary() {
  if (in_.at(Kind::Name)) return name_or_constant();
  if (in_.at(Kind::String)) return string();
  if (in_.at(Kind::Integer) || in_.at(Kind::Float)) return number();
  if (in_.at_operator("(")) return parenthesized();
  if (in_.at_operator("[")) return list();
  if (in_.at_operator("{")) return dict();
  in_.fail("an expression");
}

ExprPtr ExpressionParser::name_or_constant() {
  const Lexeme name = in_.take();
  const std::string& text = name.text;
  if (text == "true" || text == "True") return make(name.line, Constant{true, nullptr});
  if (text == "false" || text == "False") return make(name.line, Constant{false, nullptr});
  if (text == "none" || text == "None") return make(name.line, Constant{None{}, nullptr});
  return make(name.line, Name{text});
}

ExprPtr ExpressionParser::number() {
  const Lexeme number = in_.take();
  if (number.kind == Kind::Float)
    return make(number.line, Constant{parse_float(number.text).value_or(0), nullptr});
  std::string_view digits = number.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    throw Error(fmt::format("the number {}", number.text), "an integer of at most 64 bits",
                number.line);
  return make(number.line, Constant{value, nullptr});
}

ExprPtr ExpressionParser::string() {
  const int line = in_.line();
  std::string text;
  while (in_.at(Kind::String)) text += in_.take().text;  // neighbors join
  auto owned = make_text(std::move(text));
  const Text* view = owned.get();
  return make(line, Constant{view, std::move(owned)});
}

ExprPtr ExpressionParser::parenthesized() {
  const int line = in_.take().line;
  if (in_.take_operator(")")) return make(line, SequenceLiteral{Sequence::Kind::Tuple, {}});
  ExprPtr inside = tuple();
  in_.expect_operator(")");
  return inside;
}

ExprPtr ExpressionParser::list() {
  const int line = in_.take().line;
  SequenceLiteral out{Sequence::Kind::List, {}};
  while (!in_.at_operator("]")) {
    if (!out.items.empty()) in_.expect_operator(",");
    if (in_.at_operator("]")) break;
    out.items.push_back(expression());
  }
  in_.expect_operator("]");
  return make(line, std::move(out));
}

ExprPtr ExpressionParser::dict() {
  const int line = in_.take().line;
  DictLiteral out;
  while (!in_.at_operator("}")) {
    if (!out.entries.empty()) in_.expect_operator(",");
    if (in_.at_operator("}")) break;
    ExprPtr key = expression();
    in_.expect_operator(":");
    out.entries.emplace_back(std::move(key), expression());
  }
  in_.expect_operator("}");
  return make(line, std::move(out));
}

/// .name .0 [key] [a:b] (arguments), as many as there are.
ExprPtr ExpressionParser::postfix(ExprPtr object) {
  while (true) {
    const int line = in_.line();
    if (in_.take_operator(".")) {
      if (in_.at(Kind::Integer)) {
        object = make(line, Subscript{std::move(object), number()});
      } else {
        const Lexeme name = in_.expect(Kind::Name, "a name or a number behind '.'");
        object = make(line, Attribute{std::move(object), name.text});
      }
    } else if (in_.take_operator("[")) {
      object = subscript(std::move(object));
    } else if (in_.at_operator("(")) {
      object = make(line, Call{std::move(object), arguments()});
    } else {
      return object;
    }
  }
}

/// What follows "[".
ExprPtr ExpressionParser::subscript(ExprPtr object) {
  const int line = in_.line();
  const auto part = [&]() -> ExprPtr {
    return in_.at_operator(":") || in_.at_operator("]") ? nullptr : expression();
  };
  ExprPtr start = in_.at_operator(":") ? nullptr : expression();
  if (!in_.take_operator(":")) {
    if (in_.at_operator(",")) in_.fail("']': one subscript at a time");
    in_.expect_operator("]");
    return make(line, Subscript{std::move(object), std::move(start)});
  }
  ExprPtr stop = part();
  ExprPtr step = in_.take_operator(":") ? part() : nullptr;
  in_.expect_operator("]");
  return make(line, Slice{std::move(object), std::move(start), std::move(stop), std::move(step)});
}

/// | filter, 'is' test and calls, as many as there are.
ExprPtr ExpressionParser::filtered(ExprPtr input) {
  while (true) {
    const int line = in_.line();
    if (in_.take_operator("|"))
      input = make(line, Filtered{std::move(input), filter_call()});
    else if (in_.take_name("is"))
      input = test(std::move(input));
    else if (in_.at_operator("("))
      input = make(line, Call{std::move(input), arguments()});
    else
      return input;
  }
}

FilterCall ExpressionParser::filter_call() {
  const Lexeme name = in_.expect(Kind::Name, "the name of a filter");
  return {name.text, in_.at_operator("(") ? arguments() : ArgumentExprs{}};
}

std::vector<FilterCall> ExpressionParser::filter_chain() {
  std::vector<FilterCall> out;
  out.push_back(filter_call());
  while (in_.take_operator("|")) out.push_back(filter_call());
  return out;
}

std::vector<FilterCall> ExpressionParser::filters() {
  return in_.take_operator("|") ? filter_chain() : std::vector<FilterCall>{};
}

/// What follows 'is'. One argument may stand without brackets: x is divisibleby 3.
ExprPtr ExpressionParser::test(ExprPtr input) {
  const int line = in_.line();
  const bool negated = in_.take_name("not");
  Test out{std::move(input), in_.expect(Kind::Name, "the name of a test").text, {}};
  const bool ends = in_.at_name("else") || in_.at_name("or") || in_.at_name("and") ||
                    in_.at_name("if") || in_.at_name("in") || in_.at_name("not");
  if (in_.at_name("is")) in_.fail("one test, not a chain of them");
  if (in_.at_operator("("))
    out.arguments = arguments();
  else if ((in_.at(Kind::Name) && !ends) || in_.at(Kind::String) || in_.at(Kind::Integer) ||
           in_.at(Kind::Float) || in_.at_operator("[") || in_.at_operator("{"))
    out.arguments.positional.push_back(postfix(primary()));
  ExprPtr made = make(line, std::move(out));
  if (!negated) return made;
  return make(line, Unary{Unary::Operation::Not, std::move(made)});
}

ArgumentExprs ExpressionParser::arguments() {
  in_.expect_operator("(");
  ArgumentExprs out;
  while (!in_.at_operator(")")) {
    if (!out.positional.empty() || !out.named.empty()) in_.expect_operator(",");
    if (in_.at_operator(")")) break;
    if (in_.at_operator("*") || in_.at_operator("**"))
      in_.fail("arguments one by one: unpacking is not supported");
    if (in_.at(Kind::Name) && in_.peek(1).is(Kind::Operator, "=")) {
      const Lexeme name = in_.take();
      in_.take();
      out.named.emplace_back(name.text, expression());
    } else {
      if (!out.named.empty()) in_.fail("arguments without a name before those with one");
      out.positional.push_back(expression());
    }
  }
  in_.expect_operator(")");
  return out;
}

}  // namespace medusa::jinja
