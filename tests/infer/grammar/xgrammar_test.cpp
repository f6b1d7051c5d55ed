// The grammar library as we call it: each kind of grammar, each function.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/process.h"
#include "base/random.h"
#include "infer/grammar/grammar.h"
#include "tests/base/error_text.h"
#include "tests/infer/grammar/small_vocabulary.h"

namespace medusa {
namespace {

using nlohmann::json;

TEST_F(Xgrammar, ABuildWithoutItSaysWhatToInstall) {
  if (has_grammar_library()) return;
  EXPECT_EQ(fixtures::error_text([] { make_grammar_compiler(vocabulary()); }),
            "this build of medusa has no grammar library, expected xgrammar, which keeps a text "
            "inside a schema, an expression or a grammar; run tools/setup.sh, then cmake --preset "
            "release, and build again");
}

TEST_F(Xgrammar, AnExpressionLetsItsTokensComeAndNoOthers) {
  if (!has_grammar_library()) return;
  const auto at = matcher(GrammarKind::Regex, "a+b?c");
  EXPECT_EQ(texts(allowed(*at)), "a ab aab ");
  EXPECT_FALSE(at->accept('c'));
  ASSERT_TRUE(at->accept('a'));
  EXPECT_EQ(texts(allowed(*at)), "a b c ab bc aab ");
  ASSERT_TRUE(at->accept('b'));
  EXPECT_EQ(texts(allowed(*at)), "c ");
  at->rollback(1);
  EXPECT_EQ(texts(allowed(*at)), "a b c ab bc aab ");
  ASSERT_TRUE(at->accept('c'));
  EXPECT_EQ(texts(allowed(*at)), "<end> ");
  EXPECT_FALSE(at->has_ended());
  ASSERT_TRUE(at->accept(kEnd));
  EXPECT_TRUE(at->has_ended());
  EXPECT_FALSE(at->accept('a'));
  at->rollback(2);
  EXPECT_FALSE(at->has_ended());
  EXPECT_EQ(texts(allowed(*at)), "a b c ab bc aab ");
}

/// The library counts a small part of what small ones take.
TEST_F(Xgrammar, ManyGrammarsTakeNoMoreMemoryThanSome) {
  if (!has_grammar_library()) return;
  int next = 0;
  const auto compile_some = [&] {
    for (int i = 0; i < 1100; ++i, ++next) {
      std::string values;
      for (int v = 0; v < 20; ++v)
        values += (v == 0 ? "\"" : ", \"") + std::to_string(1000 * next + v) + "\"";
      compile(GrammarKind::JsonSchema, R"({"enum": [)" + values + "]}");
    }
    return memory_in_use();
  };
  compile_some();
  const int64_t some = compile_some(), more = (compile_some(), compile_some());
  EXPECT_LT(more - some, int64_t{4} << 20);
}

TEST_F(Xgrammar, TextsOfASchemaAreOfTheSchema) {
  if (!has_grammar_library()) return;
  const std::string schema =
      R"({"type": "object", "properties": {"zone": {"enum": ["a", "b"]}, "age": {"type": "integer"},
          "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}},
          "required": ["zone", "age", "tags"]})";
  int ended = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto at = matcher(GrammarKind::JsonSchema, schema);
    const std::string text = random_text(*at, seed);
    if (text.empty()) continue;  // a long number
    ++ended;
    const json value = json::parse(text);
    EXPECT_TRUE(value["zone"] == "a" || value["zone"] == "b") << text;
    EXPECT_TRUE(value["age"].is_number_integer()) << text;
    EXPECT_LE(value["tags"].size(), 3U) << text;
    EXPECT_EQ(value.size(), 3U) << text;
    EXPECT_LT(text.find("zone"), text.find("age")) << "in the schema's order";
  }
  EXPECT_GT(ended, 5);
}

TEST_F(Xgrammar, RulesAreFollowed) {
  if (!has_grammar_library()) return;
  const auto at = matcher(GrammarKind::Ebnf, "root ::= \"a\" pair*\npair ::= \"bc\" | \"true\"\n");
  EXPECT_EQ(texts(allowed(*at)), "a ab ");
  ASSERT_TRUE(at->accept('a'));
  EXPECT_EQ(texts(allowed(*at)), "b t <end> true bc ");
}

TEST_F(Xgrammar, PropertiesWithTheNamesOfAnnotationsAreToldApart) {
  if (!has_grammar_library()) return;
  const std::string schema =
      R"({"type": "object", "properties": {
          "a": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
          "b": {"type": "object", "properties": {"title": {"type": "null"}}, "required": ["title"]}},
          "required": ["a", "b"]})";
  const auto accepts = [&](const std::string& text) {
    const auto at = matcher(GrammarKind::JsonSchema, schema);
    return std::all_of(text.begin(), text.end(),
                       [&](char c) { return at->accept(static_cast<unsigned char>(c)); });
  };
  EXPECT_TRUE(accepts(R"({"a": {"title": "x"}, "b": {"title": null}})"));
  EXPECT_FALSE(accepts(R"({"a": {"title": "x"}, "b": {"title": "y"}})"));
}

TEST_F(Xgrammar, IntegersGoToTheirBoundsAndNoFurther) {
  if (!has_grammar_library()) return;
  const int64_t most = (int64_t{1} << 53) - 1;  // as Zod writes them for all integers
  const auto is_of = [&](int64_t number, const std::string& schema) {
    const auto at = matcher(GrammarKind::JsonSchema, schema);
    for (const char c : std::to_string(number))
      if (!at->accept(static_cast<unsigned char>(c))) return false;
    const auto next = allowed(*at);
    return std::count(next.begin(), next.end(), kEnd) == 1;
  };
  for (const bool exclusive : {false, true})
    for (const int64_t least : {-most, int64_t{0}, int64_t{1023}}) {
      const std::string schema = json{
          {"type", "integer"},
          {exclusive ? "exclusiveMinimum" : "minimum", least},
          {"maximum", most}}.dump();
      for (const int64_t bound : {least, most, int64_t{999999999999999}})
        for (const int64_t number : {bound - 1, bound, bound + 1, bound + 10, 10 * bound})
          EXPECT_EQ(is_of(number, schema), number >= least + exclusive && number <= most)
              << number << " " << schema;
    }
}

/// Goes through the texts of at most so many letters, and compares with the standard library.
TEST_F(Xgrammar, PatternsHoldTheTextsThatMatchAndNoOthers) {
  if (!has_grammar_library()) return;
  for (const std::string pattern : {"(ab+)?", "(ab{1,2})?", "a{1,2}|a", "(a|(b{1,2}|(b|b)))",
                                    "b{0,2}a{2}|(a{1,3}|a)", "(b*bb)?", "[^a]b?", "(a|ab)(c|bcd)?",
                                    "\\w[^\\w]", "(?:a|b)*?c", "[b-d]{2,3}", "a|", "\\.?a"}) {
    const auto at = matcher(GrammarKind::JsonSchema,
                            json{{"type", "string"}, {"pattern", "^(" + pattern + ")$"}}.dump());
    ASSERT_TRUE(at->accept('"'));
    const std::regex expected(pattern);
    const std::function<void(const std::string&)> go_on = [&](const std::string& text) {
      const bool ends = at->accept('"');
      if (ends) at->rollback(1);
      EXPECT_EQ(ends, std::regex_match(text, expected)) << pattern << " " << text;
      if (text.size() == 4) return;
      for (const char c : {'a', 'b', 'c', '.'})
        if (at->accept(static_cast<unsigned char>(c))) {
          go_on(text + c);
          at->rollback(1);
        } else {
          EXPECT_FALSE(std::regex_match(text + c, expected)) << pattern << " " << text + c;
        }
    };
    go_on("");
    for (const char c : {'\n', '\\'})
      EXPECT_FALSE(at->accept(static_cast<unsigned char>(c))) << pattern;
  }
}

TEST_F(Xgrammar, TextsOfALengthHaveNoCharactersThatJsonEscapes) {
  if (!has_grammar_library()) return;
  for (const auto& [bounds, least, most] : std::initializer_list<std::tuple<const char*, int, int>>{
           {R"("maxLength": 3)", 0, 3},
           {R"("minLength": 2)", 2, 9},
           {R"("minLength": 1, "maxLength": 2)", 1, 2},
           {R"("maxLength": 2147483647)", 0, 9},
           {R"("format": "password", "maxLength": 1)", 0, 1}}) {
    const auto at = matcher(GrammarKind::JsonSchema,
                            std::string(R"({"type": ["string", "null"], )") + bounds + "}");
    ASSERT_TRUE(at->accept('"'));
    for (int length = 0; length <= most && length < 9; ++length) {
      const auto tokens = allowed(*at);
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), '"') > 0, length >= least) << bounds;
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 'x') > 0, length < most) << bounds;
      EXPECT_TRUE(std::all_of(tokens.begin(), tokens.end(),
                              [](TokenId id) { return id >= 0x20 && id != '\\'; }))
          << bounds << " " << length;
      if (length == most) break;
      ASSERT_TRUE(at->accept(length % 2 == 0 ? 'x' : '0'));
    }
  }
}

/// As the library reads them, counts above 128 let tokens come that it then refuses.
TEST_F(Xgrammar, LargeCountsLetNoTokenComeThatIsRefused) {
  if (!has_grammar_library()) return;
  struct Counted {
    GrammarKind kind;
    std::string text;
    int least, most;
    char begin, end;
  };
  const auto schema = [](const char* bounds) {
    return std::string(R"({"type": "string", )") + bounds + "}";
  };
  for (const Counted& each : std::initializer_list<Counted>{
           {GrammarKind::JsonSchema, schema(R"("minLength": 129)"), 129, 999, '"', '"'},
           {GrammarKind::JsonSchema, schema(R"("maxLength": 250)"), 0, 250, '"', '"'},
           {GrammarKind::JsonSchema, schema(R"("minLength": 150, "maxLength": 321)"), 150, 321, '"',
            '"'},
           {GrammarKind::JsonSchema, schema(R"("pattern": "^[^y]{200}$")"), 200, 200, '"', '"'},
           {GrammarKind::Regex, "[ ]*<[^<>]{129,}>", 129, 999, '<', '>'},
           {GrammarKind::Regex, "<(?:x|é){105,340}>", 105, 340, '<', '>'},
           {GrammarKind::Ebnf, "root ::= [ \\n]* \"<\" [ -;?-\\ud7ff]{200} \">\"", 200, 200, '<',
            '>'},
           {GrammarKind::Ebnf, "root ::= \" \"* \"<\" (x | \"ab\") {130, 260} \">\"\nx ::= [^<>a]",
            130, 260, '<', '>'}}) {
    const auto at = matcher(each.kind, each.text);
    ASSERT_TRUE(at->accept(each.begin));
    for (int length = 0; length <= each.most && length < 350; ++length) {
      const auto tokens = allowed(*at);
      const auto may_come = [&](TokenId id) {
        return std::find(tokens.begin(), tokens.end(), id) != tokens.end();
      };
      EXPECT_EQ(may_come(each.end), length >= each.least) << each.text << " " << length;
      EXPECT_EQ(may_come('x'), length < each.most) << each.text << " " << length;
      for (const TokenId token : tokens) {
        ASSERT_TRUE(at->accept(token)) << each.text << " " << length << " " << token;
        at->rollback(1);
      }
      if (length < each.most) {
        ASSERT_TRUE(at->accept('x'));
      }
    }
  }
}

TEST_F(Xgrammar, AGrammarWithoutAnyTextIsRefused) {
  if (!has_grammar_library()) return;
  for (const auto& [kind, text] : std::initializer_list<std::pair<GrammarKind, const char*>>{
           {GrammarKind::JsonSchema, R"({"$ref": "#"})"},
           {GrammarKind::JsonSchema, R"({"anyOf": [{"$ref": "#"}]})"},
           {GrammarKind::Ebnf, "root ::= root \"a\""}}) {
    const std::string error =
        fixtures::error_text([&, kind = kind, text = text] { matcher(kind, text); });
    EXPECT_TRUE(error.starts_with("the grammar holds no text at all, ")) << text << ": " << error;
  }
}

TEST_F(Xgrammar, CountsThatWouldFillTheMemoryAreRefused) {
  if (!has_grammar_library()) return;
  for (const char* each :
       {"root ::= \"a\"{1000000000}", "root ::= \"a\" {50000}", "root ::= [a]{2000000}",
        "root ::= \"}]\"{99999999999999999999}", "root ::= \"\\\"\"{1,60000}"}) {
    const std::string error = fixtures::error_text([&] { matcher(GrammarKind::Ebnf, each); });
    EXPECT_TRUE(error.starts_with("the grammar has the count {")) << each << ": " << error;
  }
  for (const char* each :
       {"root ::= \"a\"{2,30}", "root ::= [a-z]{0,5000}", "root ::= \"{\" [}] #{"})
    EXPECT_NO_THROW(matcher(GrammarKind::Ebnf, each)) << each;
}

TEST_F(Xgrammar, WhatIsNoGrammarIsRefused) {
  if (!has_grammar_library()) return;
  for (const auto& [kind, text] : std::initializer_list<std::pair<GrammarKind, const char*>>{
           {GrammarKind::JsonSchema, R"({"type": "nothing"})"},
           {GrammarKind::JsonSchema, R"({"$ref": "#/nowhere"})"},
           {GrammarKind::JsonSchema, "{"},
           {GrammarKind::Regex, "(a"},
           {GrammarKind::Ebnf, "root ::= nothing"},
           {GrammarKind::Ebnf, "a ::= \"b\""},
           {GrammarKind::Ebnf, ""}}) {
    const std::string error =
        fixtures::error_text([&, kind = kind, text = text] { matcher(kind, text); });
    EXPECT_NE(error, "") << text;
    EXPECT_EQ(error.find(".cc:"), std::string::npos) << error;
  }
}

TEST_F(Xgrammar, MatchersOfOneGrammarAreIndependent) {
  if (!has_grammar_library()) return;
  const auto compiler = make_grammar_compiler(vocabulary());
  const auto grammar = compiler->compile({GrammarKind::Regex, "(ab)+"});
  const auto one = grammar->make_matcher(), other = grammar->make_matcher();
  ASSERT_TRUE(one->accept('a'));
  EXPECT_EQ(texts(allowed(*one)), "b ");
  EXPECT_EQ(texts(allowed(*other)), "a ab ");
}

TEST_F(Xgrammar, SchemasStandBetweenTheMarksOfATag) {
  if (!has_grammar_library()) return;
  const json tag =
      json::parse(R"({"type": "structural_tag", "format": {"type": "tags_with_separator",
      "tags": [{"type": "tag", "begin": "<a>", "end": "</a>", "content": {"type": "json_schema",
      "json_schema": {"type": "boolean"}, "max_whitespace_cnt": 20}}], "separator": "\n",
      "at_least_one": true, "stop_after_first": true}})");
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto tags = matcher(GrammarKind::StructuralTag, tag.dump());
    const std::string text = random_text(*tags, seed);
    EXPECT_TRUE(text == "<a>true</a>" || text == "<a>false</a>") << text;
  }
  EXPECT_THROW(matcher(GrammarKind::StructuralTag, "{}"), UserError);
}

TEST_F(Xgrammar, SpellsWhatMustComeInLongTokens) {
  const auto one_way = matcher(GrammarKind::Regex, "aab(x|y)");
  EXPECT_EQ(texts(one_way->forced_tokens(8)), "aab ");
  EXPECT_TRUE(one_way->forced_tokens(0).empty());
  ASSERT_TRUE(one_way->accept('a'));
  EXPECT_EQ(texts(one_way->forced_tokens(8)), "ab ");  // the text behind what has come
  ASSERT_TRUE(one_way->accept('a'));
  ASSERT_TRUE(one_way->accept('b'));
  EXPECT_TRUE(one_way->forced_tokens(8).empty());  // x or y
  const auto long_way = matcher(GrammarKind::Regex, "truexyztrue");
  EXPECT_EQ(texts(long_way->forced_tokens(3)), "true x y ");
  const auto endless = matcher(GrammarKind::Ebnf, "root ::= \"ab\" root");
  EXPECT_EQ(texts(endless->forced_tokens(3)), "ab ab ab ");
  EXPECT_EQ(texts(endless->forced_tokens(1)), "ab ");  // it is where it was
}

/// The library reads hexadecimal digits behind some codes as theirs, and a caret as a negation.
TEST_F(Xgrammar, AClassHoldsItsCharactersAndNoOthers) {
  if (!has_grammar_library()) return;
  const auto is = [](std::u32string_view codes) {
    return [codes](char32_t c) { return codes.find(c) != std::u32string_view::npos; };
  };
  const auto is_not = [](std::u32string_view codes) {
    return [codes](char32_t c) { return codes.find(c) == std::u32string_view::npos; };
  };
  for (const auto& [text, holds] : std::initializer_list<
           std::pair<const char*, std::function<bool(char32_t)>>>{{"[\\u00e9a]", is(U"\u00e9a")},
                                                                  {"[^\\u00e9a]",
                                                                   is_not(U"\u00e9a")},
                                                                  {"[\\x010]", is(U"\x01\x30")},
                                                                  {"[\\x7f0]", is(U"\x7f\x30")},
                                                                  {"[\\x5ef]", is(U"^f")},
                                                                  {"[\\^f]", is(U"^f")},
                                                                  {"[\\u00e9\\d]",
                                                                   is(U"\u00e90123456789")},
                                                                  {"[\\u0000-\\u001fa]",
                                                                   [](char32_t c) {
                                                                     return c < 0x20 || c == U'a';
                                                                   }},
                                                                  {"[A-C\\u00c0-\\u00d60-9]",
                                                                   [](char32_t c) {
                                                                     return (c >= U'A' &&
                                                                             c <= U'C') ||
                                                                            (c >= 0xC0 &&
                                                                             c <= 0xD6) ||
                                                                            (c >= U'0' &&
                                                                             c <= U'9');
                                                                   }},
                                                                  {"\\S",
                                                                   is_not(U"\t\n\v\f\r \u00a0")},
                                                                  {"[^\\n]", is_not(U"\n")}}) {
    const auto at = matcher(GrammarKind::Regex, text);
    for (char32_t code = 0; code < 0x180; ++code) {
      std::string bytes(1, static_cast<char>(code));
      if (code >= 0x80)
        bytes = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
      int32_t taken = 0;
      for (const char byte : bytes) taken += at->accept(static_cast<unsigned char>(byte)) ? 1 : 0;
      EXPECT_EQ(taken == std::ssize(bytes), holds(code)) << text << " " << std::hex << +code;
      at->rollback(taken);
    }
  }
}

/// Halves of UTF-16 are no characters, though the library's rules let them come.
TEST_F(Xgrammar, NoTextHoldsSurrogates) {
  if (!has_grammar_library()) return;
  for (const auto& [kind, text] : std::initializer_list<std::pair<GrammarKind, const char*>>{
           {GrammarKind::Regex, "."},
           {GrammarKind::Regex, "[^a]"},
           {GrammarKind::Ebnf, "root ::= [^a]"},
           {GrammarKind::JsonSchema, R"({"type": "string"})"}}) {
    const auto at = matcher(kind, text);
    if (kind == GrammarKind::JsonSchema) {
      ASSERT_TRUE(at->accept('"'));
    }
    ASSERT_TRUE(at->accept(0xED)) << text;
    for (TokenId byte = 0x80; byte < 0xC0; ++byte) {
      EXPECT_EQ(at->accept(byte), byte < 0xA0) << text << " " << byte;
      if (byte < 0xA0) at->rollback(1);
    }
    for (const TokenId each : allowed(*at)) EXPECT_LT(each, 0xA0) << text;
    at->rollback(1);
    ASSERT_TRUE(at->accept(0xEE)) << text;
    EXPECT_TRUE(at->accept(0xA0)) << text;
  }
}

/// Two digits, whatever follows.
TEST_F(Xgrammar, EscapesByTwoDigitsHaveTwo) {
  for (const auto& [kind, text] : std::initializer_list<std::pair<GrammarKind, const char*>>{
           {GrammarKind::Regex, R"(\x61b)"},
           {GrammarKind::Regex, R"([\x61b]{1})"},
           {GrammarKind::Ebnf, R"(root ::= "\x61b")"},
           {GrammarKind::Ebnf, R"(root ::= [\x61b])"}}) {
    const auto read = matcher(kind, text);
    const bool is_class = std::string_view(text).find('[') != std::string_view::npos;
    EXPECT_EQ(texts(allowed(*read)), is_class ? "a b " : "a ab ") << text;
  }
}

}  // namespace
}  // namespace medusa
