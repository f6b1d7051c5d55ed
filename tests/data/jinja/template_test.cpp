#include "data/chat/jinja/template.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

using fixtures::error_text;

constexpr const char* kRemedy =
    "; correct it, or choose a built-in template with backbone.chat_template";

std::string render(const std::string& source, const jinja::RenderOptions& options = {}) {
  return jinja::Template(source, "t.jinja")
      .render([](jinja::Heap&) { return jinja::Variables{}; }, options);
}

std::string render_error(const std::string& source, const jinja::RenderOptions& options = {}) {
  return error_text([&] { render(source, options); });
}

TEST(JinjaTemplate, SaysWhereAndWhatIsWrong) {
  const std::map<std::string, std::string> errors = {
      {"a\n\n{{ x.y }}", "3: the undefined variable 'x', expected a value, for its attribute 'y'"},
      {"{% set d = {} %}\n{{ d.y + 'x' }}",
       "2: the attribute 'y' of a value of type dict, expected a value to compute '+' with"},
      {"{% macro m(x) %}\n{{ x ~ none[1:] }}\n{% endmacro %}\n{{ m(1) }}",
       "2: a slice of a value of type NoneType, expected one of a text or a list"},
      {"{{ 1\n+ 'x' }}", "2: int + str, expected two numbers, or two texts or lists to join"},
      {"{{ none +\n1 }}", "1: NoneType + int, expected two numbers, or two texts or lists to join"},
      {"{{ [\nnone,\nnone] +\n1 }}",
       "3: list + int, expected two numbers, or two texts or lists to join"},
      {"a\n{% set a, b =\n[1] %}", "2: 1 values for 2 variables, expected as many"},
      {"{% filter\nupper|nosuch %}\n{% endfilter %}",
       "1: the filter 'nosuch', expected one that this program knows"},
      {"{{ (-9223372036854775807 - 1) // -1 }}",
       "1: an integer beyond 64 bits is computed, expected smaller numbers"},
      {"\n{% block x %}",
       "2: the statement 'block', expected one of for, if, set, macro, filter, "
       "generation, raw, break, continue"},
      {"{% extends 'x' %}",
       "1: the statement 'extends', expected one of for, if, set, macro, "
       "filter, generation, raw, break, continue"},
      {"{% call m() %}{% endcall %}",
       "1: the statement 'call', expected one of for, if, set, "
       "macro, filter, generation, raw, break, continue"},
      {"{% for x in y recursive %}", "1: 'recursive', expected a loop that is not recursive"},
      {"{{ f(*x) }}", "1: '*', expected arguments one by one: unpacking is not supported"},
      {"{{ x[1, 2] }}", "1: ',', expected ']': one subscript at a time"},
      {"{{ 1|tojsn }}", "1: the filter 'tojsn', expected one that this program knows"},
      {"{{ 1 is nice }}", "1: the test 'nice', expected one that this program knows"},
      {"{{ '%d' % 1 }}", "1: a text % values, expected '~' or '+' to put texts together"},
      {"{{ [].append(1) }}",
       "1: the attribute 'append' of a value of type list is called, expected a function or a "
       "macro"},
      {"{% if 1 %}\n{% for x in [] %}\n", "2: the end of the template, expected {% endfor %}"},
      {"{% set x.y = 1 %}",
       "1: an assignment to an attribute of 'x', expected a namespace: "
       "nothing else can be changed"},
      {"{{ '\\N{DASH}' }}", "1: the escape \\N in a string, expected the character itself"},
      {"{{ 'a }}\n", "1: a string that does not end, expected its closing quote"},
      {"{# a", "1: a comment that does not end, expected '#}'"},
      {"{{ (1] }}", "1: an unexpected ']', expected ')'"},
      {"{{ 99999999999999999999 }}",
       "1: the number 99999999999999999999, expected an integer of at most 64 bits"},
      {"{{ 9223372036854775807 + 1 }}",
       "1: an integer beyond 64 bits is computed, expected smaller numbers"},
      {"{{ range }}", "1: a value of type function is printed, expected a text or a number"},
      {"{{ [1]|map('string') }}",
       "1: a generator is printed, expected a list: add the filter 'list'"},
      {"{% macro m(x) %}{% endmacro %}{{ m(1, 2) }}",
       "1: the macro 'm' has 2 arguments, expected at most 1"},
      {"{{ 'x'.split(1) }}",
       "1: the argument 'sep' of split is a value of type int, expected a text"},
  };
  for (const auto& [source, error] : errors)
    EXPECT_EQ(render_error(source), "t.jinja:" + error + kRemedy) << source;
}

TEST(JinjaTemplate, NamesTheWordsOfRaiseException) {
  EXPECT_EQ(render_error("\n{{ raise_exception('Roles must alternate') }}"),
            "t.jinja:2: it refuses the conversation with 'Roles must alternate', expected one it "
            "was written for; change the conversation, or choose a built-in template with "
            "backbone.chat_template");
}

TEST(JinjaTemplate, StopsAtItsLimits) {
  const std::string steps =
      "the template works for more than 4000000 steps, expected one that ends sooner";
  const std::string bytes =
      "the template makes more than 16777216 bytes of text, expected one that makes less";
  const std::string depth =
      "the template nests deeper than 400 levels, expected one that nests less";
  const std::string loop = "{% for a in range(9999) %}{% for b in range(9999) %}";
  const std::string ends = "{% endfor %}{% endfor %}";
  const std::string twice =
      "{% set n = namespace(x=['abcdefgh'], y=['abcdefgh']) %}{% for i in range(60) %}"
      "{% set n.x = ";
  const std::map<std::string, std::string> errors = {
      {"{% for a in range(90000) %}{{ 1 in range(90000)|list }}{{ 1 + 1 + 1 }}{% endfor %}", bytes},
      {"{% for a in range(90000) %}{% for b in range(900) %}{{ '' }}" + ends, bytes},
      {"{{ 'x' * 1000000000000 }}", bytes},
      {"{{ [1] * 1000000000000 }}", bytes},
      {"{{ 'x'|indent(1000000000000) }}", bytes},
      {"{{ {'a': 1}|tojson(indent=100000000) }}", bytes},
      {"{{ ('x' * 9000).replace('x', 'y' * 9000) }}", bytes},
      {"{{ range(9999)|join('x' * 9999) }}", bytes},
      {loop + "some words and more of them" + ends, bytes},
      {twice + "n.x + n.x %}{% endfor %}", bytes},
      {twice + "[n.x, n.x] %}{% endfor %}{{ n.x }}", steps},
      {twice + "[n.x, n.x] %}{% endfor %}{{ n.x|tojson }}", steps},
      {twice + "[n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}", steps},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", depth},
      {"{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"
       "{{ n.x }}",
       depth},
      {"{% set n = namespace(x=1, y=1) %}{% for i in range(9999) %}{% set n.x = [n.x] %}"
       "{% set n.y = [n.y] %}{% endfor %}{{ n.x == n.y }}",
       depth},
      {"{% set n = namespace(x=1, y=1) %}{% for i in range(9999) %}{% set n.x = [n.x] %}"
       "{% set n.y = [n.y] %}{% endfor %}{{ n.x < n.y }}",
       depth},
      {"{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = {'a': n.x} %}"
       "{% endfor %}{{ n.x|tojson }}",
       depth},
  };
  for (const auto& [source, error] : errors)
    EXPECT_EQ(render_error(source), "t.jinja:1: " + error + kRemedy) << source;
}

TEST(JinjaTemplate, RefusesSourcesThatNestTooDeep) {
  const auto repeat = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const std::map<std::string, std::vector<std::string>> sources = {
      {"an expression nested deeper than 100 levels",
       {"{{ " + repeat("(", 9999) + "1" + repeat(")", 9999) + " }}",
        "{{ " + repeat("[", 9999) + "1" + repeat("]", 9999) + " }}",
        "{{ " + repeat("-", 9999) + "1 }}", "{{ " + repeat("not ", 9999) + "1 }}",
        "{{ 1" + repeat(" if 1 else 1", 9999) + " }}"}},
      {"an expression of more than 2000 parts",
       {"{{ 1" + repeat(" + 1", 99999) + " }}", "{{ x" + repeat(".x", 99999) + " }}",
        "{{ x" + repeat("|list", 99999) + " }}", "{{ 1" + repeat(" and 1", 99999) + " }}",
        "{{ 1" + repeat(" is odd|int", 99999) + " }}", "{{ x" + repeat("()", 99999) + " }}"}},
      {"statements nested deeper than 60 levels",
       {repeat("{% if 1 %}", 9999) + repeat("{% endif %}", 9999),
        repeat("{% for a in [1] %}", 9999) + repeat("{% endfor %}", 9999),
        repeat("{% macro a() %}", 9999) + repeat("{% endmacro %}", 9999)}},
      {"'('", {"{% for " + repeat("(", 9999) + "a" + repeat(")", 9999) + " in b %}{% endfor %}"}},
  };
  for (const auto& [error, each] : sources)
    for (const std::string& source : each)
      EXPECT_TRUE(render_error(source).starts_with("t.jinja:1: " + error)) << render_error(source);
}

TEST(JinjaTemplate, RendersWhatOthersOfItsSizeMayNeed) {
  std::string sum = "{{ 1";
  for (int i = 0; i < 300; ++i) sum += " + 1";
  EXPECT_EQ(render(sum + " }}"), "301");
  EXPECT_EQ(render("{% macro m(k) %}{% if k > 0 %}{{ m(k - 1) }}{% endif %}x{% endmacro %}"
                   "{{ m(50)|length }}"),
            "51");
}

TEST(JinjaTemplate, MendsSourcesThatAreNoUtf8) {
  EXPECT_EQ(render("a\xFF{{ '\xC3'|length }}"),
            "a\xEF\xBF\xBD"
            "1");
}

TEST(JinjaTemplate, HasNoClockUnlessItIsGivenOne) {
  EXPECT_EQ(render("{{ strftime_now is defined }}"), "False");
  jinja::RenderOptions options;
  options.now = std::tm{};
  options.now->tm_mday = 5;
  options.now->tm_year = 101;
  EXPECT_EQ(render("{{ strftime_now('%Y-%m-%d') }}", options), "2001-01-05");
}

}  // namespace
}  // namespace medusa
