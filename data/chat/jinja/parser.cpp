#include "data/chat/jinja/parser.h"

#include <algorithm>
#include <initializer_list>

#include "data/chat/jinja/lexer.h"

namespace medusa::jinja {
namespace {

constexpr int kMaxStatementDepth =
    60;  // of statements in each other; published templates stay below 10
constexpr const char* kStatements =
    "one of for, if, set, macro, filter, generation, raw, break, continue";

using Kind = Lexeme::Kind;
using Names = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : in_(lex(source)), expressions_(in_) {}

  Body run() { return body({}); }

 private:
  /// Statements up to a tag with one of these names, whose '{%' is then read, or up to the end of
  /// the source if there are none.
  Body body(Names ends) {
    if (++depth_ > kMaxStatementDepth)
      throw Error(fmt::format("statements nested deeper than {} levels", kMaxStatementDepth),
                  "fewer of them", in_.line());
    Body out;
    while (!in_.at(Kind::End)) {
      const int line = in_.line();
      if (in_.at(Kind::Data)) {
        out.push_back({line, Output{in_.take().text}});
      } else if (in_.at(Kind::PrintBegin)) {
        in_.take();
        out.push_back({line, Print{expressions_.tuple()}});
        in_.expect(Kind::PrintEnd, "'}}' behind the expression");
      } else {
        in_.expect(Kind::BlockBegin, "text or a tag");
        if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return in_.at_name(end); })) {
          --depth_;
          return out;
        }
        out.push_back(statement());
        end_tag();
      }
    }
    if (ends.size() > 0) in_.fail(fmt::format("{{% {} %}}", *(ends.end() - 1)));
    --depth_;
    return out;
  }

  /// A block's body, and its closing tag up to '%}'.
  Body body_until(std::string_view end) {
    Body out = body({end});
    in_.expect_name(end);
    return out;
  }

  void end_tag() { in_.expect(Kind::BlockEnd, "'%}' behind the statement"); }

  Statement statement() {
    const int line = in_.line();
    const Lexeme name = in_.expect(Kind::Name, kStatements);
    if (name.text == "if") return {line, if_block()};
    if (name.text == "for") return {line, for_block()};
    if (name.text == "set") return set(line);
    if (name.text == "macro") return {line, macro()};
    if (name.text == "filter") return {line, filter_block()};
    if (name.text == "generation") return {line, generation()};
    if (name.text == "break" || name.text == "continue") return jump(name);
    throw Error(fmt::format("the statement '{}'", name.text), kStatements, line);
  }

  If if_block() {
    If out;
    do {
      ExprPtr condition = expressions_.tuple(false);
      end_tag();
      out.branches.emplace_back(std::move(condition), body({"elif", "else", "endif"}));
    } while (in_.take_name("elif"));
    if (in_.take_name("else")) {
      end_tag();
      out.otherwise = body({"endif"});
    }
    in_.expect_name("endif");
    return out;
  }

  For for_block() {
    For out;
    out.target = target(false);
    in_.expect_name("in");
    out.iterable = expressions_.tuple(false);
    if (in_.take_name("if")) out.condition = expressions_.expression();
    if (in_.at_name("recursive")) in_.fail("a loop that is not recursive");
    end_tag();
    const bool outside = std::exchange(in_loop_, true);
    out.body = body({"else", "endfor"});
    in_loop_ = outside;
    if (in_.take_name("else")) {
      end_tag();
      out.otherwise = body({"endfor"});
    }
    in_.expect_name("endfor");
    return out;
  }

  /// What a loop or a 'set' assigns to.
  Target target(bool with_attribute) {
    Target out = one_target(with_attribute);
    if (!in_.at_operator(",")) return out;
    Target several;
    several.parts.push_back(std::move(out));
    while (in_.take_operator(",") && (in_.at(Kind::Name) || in_.at_operator("(")) &&
           !in_.at_name("in"))
      several.parts.push_back(one_target(with_attribute));
    return several;
  }

  Target one_target(bool with_attribute) {
    if (in_.at_operator("(")) {
      if (++depth_ > kMaxStatementDepth) in_.fail("fewer brackets");
      in_.take();
      Target inside = target(with_attribute);
      in_.expect_operator(")");
      --depth_;
      return inside;
    }
    Target out;
    out.name = in_.expect(Kind::Name, "the name of a variable").text;
    for (const char* constant : {"true", "false", "none", "True", "False", "None"})
      if (out.name == constant)
        throw Error(fmt::format("an assignment to '{}'", out.name), "a variable", in_.line());
    if (with_attribute && in_.take_operator("."))
      out.attribute = in_.expect(Kind::Name, "the name of an attribute").text;
    return out;
  }

  Statement set(int line) {
    Target to = target(true);
    if (in_.take_operator("=")) return {line, Set{std::move(to), expressions_.tuple()}};
    SetBlock out{std::move(to), expressions_.filters(), {}};
    end_tag();
    out.body = captured_body("endset");
    return {line, std::move(out)};
  }

  Macro macro() {
    Macro out;
    out.name = in_.expect(Kind::Name, "the name of a macro").text;
    in_.expect_operator("(");
    while (!in_.at_operator(")")) {
      if (!out.parameters.empty()) in_.expect_operator(",");
      const Lexeme name = in_.expect(Kind::Name, "the name of a parameter");
      ExprPtr value;
      if (in_.take_operator("="))
        value = expressions_.expression();
      else if (!out.parameters.empty() && out.parameters.back().second)
        throw Error(
            fmt::format("the parameter '{}' has no default, but stands behind one", name.text),
            "a default", name.line);
      out.parameters.emplace_back(name.text, std::move(value));
    }
    in_.expect_operator(")");
    end_tag();
    out.body = captured_body("endmacro");
    return out;
  }

  FilterBlock filter_block() {
    FilterBlock out{expressions_.filter_chain(), {}};
    end_tag();
    out.body = captured_body("endfilter");
    return out;
  }

  Generation generation() {
    end_tag();
    return {captured_body("endgeneration")};
  }

  /// A body that no break may leave.
  Body captured_body(std::string_view end) {
    const bool outside = std::exchange(in_loop_, false);
    Body out = body_until(end);
    in_loop_ = outside;
    return out;
  }

  Statement jump(const Lexeme& name) {
    if (!in_loop_)
      throw Error(fmt::format("'{}' outside of a loop", name.text), "it in the body of a loop",
                  name.line);
    if (name.text == "break") return {name.line, Break{}};
    return {name.line, Continue{}};
  }

  LexemeStream in_;
  ExpressionParser expressions_;
  int depth_ = 0;
  bool in_loop_ = false;
};

}  // namespace

Body parse(std::string_view source) { return Parser(source).run(); }

}  // namespace medusa::jinja
