// The grammar library as we call it: each kind of grammar, each function.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/random.h"
#include "infer/grammar/grammar.h"
#include "infer/grammar/watched_call.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

using nlohmann::json;

constexpr TokenId kEnd = 256, kNoText = 257;

/// A token for each byte, an end, one without text, and some of several bytes.
GrammarVocabulary vocabulary() {
  GrammarVocabulary out;
  for (int byte = 0; byte < 256; ++byte) out.bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* each : {"", "", "ab", "{\"", "\": ", "\", \"", "true", "}", "bc", "aab"})
    out.bytes.emplace_back(each);
  out.ends = {kEnd};
  return out;
}

class Xgrammar : public testing::Test {
 protected:
  std::shared_ptr<const CompiledGrammar> compile(GrammarKind kind, const std::string& text) {
    if (!compiler_) compiler_ = make_grammar_compiler(vocabulary());
    return compiler_->compile({kind, text});
  }
  std::unique_ptr<GrammarMatcher> matcher(GrammarKind kind, const std::string& text) {
    return compile(kind, text)->make_matcher();
  }
  static std::vector<TokenId> allowed(GrammarMatcher& matcher) {
    const auto size = std::ssize(vocabulary().bytes);
    std::vector<int32_t> mask(static_cast<size_t>(size + 31) / 32);
    matcher.fill_mask(mask);
    std::vector<TokenId> out;
    for (TokenId id = 0; id < size; ++id)
      if ((static_cast<uint32_t>(mask[static_cast<size_t>(id / 32)]) >> (id % 32) & 1U) != 0)
        out.push_back(id);
    return out;
  }
  static std::string texts(const std::vector<TokenId>& tokens) {
    const GrammarVocabulary all = vocabulary();
    std::string out;
    for (const TokenId id : tokens)
      out += (id == kEnd ? "<end>" : all.bytes.at(static_cast<size_t>(id))) + " ";
    return out;
  }
  /// Follows the masks by chance to an end; empty: it did not come to one.
  static std::string random_text(GrammarMatcher& matcher, uint64_t seed) {
    std::string out;
    for (int64_t i = 0; i < 400; ++i) {
      const auto tokens = allowed(matcher);
      EXPECT_FALSE(tokens.empty());
      const double u = Random(seed).uniform(RandomUse::Shuffle, i);
      const bool may_end = tokens.back() == kEnd || std::count(tokens.begin(), tokens.end(), kEnd);
      const TokenId next =
          may_end ? kEnd : tokens[static_cast<size_t>(u * static_cast<double>(tokens.size()))];
      EXPECT_NE(next, kNoText);
      EXPECT_TRUE(matcher.accept(next));
      if (matcher.has_ended()) return out;
      out += vocabulary().bytes[static_cast<size_t>(next)];
    }
    return {};
  }

  std::unique_ptr<GrammarCompiler> compiler_;
};

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

TEST_F(Xgrammar, AGrammarThatReadsATextInEverMoreWaysIsEnded) {
  if (!has_grammar_library()) return;
  const auto at = matcher(GrammarKind::Ebnf, "root ::= s\ns ::= s s | s s s | s s s s | [a-z]\n");
  const std::string error = fixtures::error_text([&] {
    for (int i = 0; i < 100000; ++i) {
      ASSERT_TRUE(at->accept('a'));
      allowed(*at);
    }
  });
  EXPECT_TRUE(error.starts_with("the grammar takes ")) << error;
}

TEST_F(Xgrammar, AllTextsOfAGrammarShareItsTime) {
  if (!has_grammar_library()) return;
  const char* rules = "root ::= s\ns ::= s s | s s s | s s s s | [a-z]\n";
  const auto grammar = compile(GrammarKind::Ebnf, rules);
  std::vector<std::unique_ptr<GrammarMatcher>> texts;
  for (int i = 0; i < 2; ++i) texts.push_back(grammar->make_matcher());
  const auto step = [&](GrammarMatcher& at) {
    return fixtures::error_text([&] {
      ASSERT_TRUE(at.accept('a'));
      allowed(at);
    });
  };
  const std::string none = fixtures::error_text([] {});
  bool is_spent = false;
  for (int token = 0; token < 100000 && !is_spent; ++token)
    for (const auto& each : texts) is_spent = is_spent || step(*each) != none;
  EXPECT_TRUE(is_spent);
  for (const auto& each : texts) EXPECT_NE(step(*each), none) << "without another long call";
  EXPECT_NE(step(*grammar->make_matcher()), none);
  EXPECT_NE(fixtures::error_text([&] { compile(GrammarKind::Ebnf, rules); }), none);
  EXPECT_EQ(fixtures::error_text([&] { compile(GrammarKind::Ebnf, "root ::= \"a\""); }), none);
}

GrammarVocabulary with_dashes() {
  GrammarVocabulary out = vocabulary();
  out.bytes.emplace_back(64, '-');
  return out;
}

TEST_F(Xgrammar, ALongTokenIsReadAsItsBytesAreAndIsTakenBackWhole) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_dashes());
  const auto dashes = static_cast<TokenId>(vocabulary().bytes.size());
  const auto at = matcher(GrammarKind::Regex, "-{65,70}a");
  EXPECT_TRUE(at->accept(dashes));
  EXPECT_FALSE(at->accept(dashes)) << "the seventh would be one too many";
  EXPECT_FALSE(at->accept('a'));
  EXPECT_TRUE(at->accept('-'));
  EXPECT_TRUE(at->accept('a'));
  at->rollback(3);
  for (int i = 0; i < 66; ++i) ASSERT_TRUE(at->accept('-')) << i;
  at->rollback(65);
  EXPECT_TRUE(at->accept(dashes));
  EXPECT_TRUE(at->accept('a'));
  EXPECT_TRUE(at->accept(kEnd));
  EXPECT_TRUE(at->has_ended());
}

/// What a thread computes until f throws, and the most that one call of step took, seconds.
struct LongestCall {
  double all = 0, most = 0;
};
LongestCall time_until_refused(const std::function<void()>& step, int most_steps) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  LongestCall out;
  for (int i = 0; i < most_steps; ++i) {
    const double began = now();
    const bool refused = fixtures::error_text(step) != fixtures::error_text([] {});
    out.all += now() - began;
    out.most = std::max(out.most, now() - began);
    if (refused) return out;
  }
  ADD_FAILURE() << "not refused in " << most_steps << " steps";
  return out;
}

TEST_F(Xgrammar, NoCallOfALongTokenTakesLongerThanAGrammarMay) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_dashes());
  const auto dashes = static_cast<TokenId>(vocabulary().bytes.size());
  const auto at = matcher(GrammarKind::Ebnf, "root ::= s\ns ::= s s | s s s | s s s s | [-]\n");
  const LongestCall found = time_until_refused([&] { at->accept(dashes); }, 100);
  EXPECT_LT(found.most, 1.5);
}

/// And four thousand tokens of several words, which an ambiguous grammar reads in many ways.
GrammarVocabulary with_words() {
  GrammarVocabulary out = with_dashes();
  for (int64_t i = 0; i < 4000; ++i) {
    std::string words;
    for (uint64_t j = 0; j < 10; ++j)
      words +=
          j % 3 == 2 ? ' ' : static_cast<char>('a' + Random(3).bits(RandomUse::Shuffle, i, j) % 26);
    out.bytes.push_back(words);
  }
  return out;
}

TEST_F(Xgrammar, AMaskThatComputesForMinutesIsLeftBehind) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_words());
  const auto at =
      matcher(GrammarKind::Ebnf, "root ::= s\ns ::= s s | s s s | [-] | [a-z]+ \" \"?\n");
  std::vector<int32_t> mask((with_words().bytes.size() + 31) / 32);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(at->accept('-'));
  const std::string error = fixtures::error_text([&] { at->fill_mask(mask); });
  EXPECT_TRUE(error.starts_with("the grammar takes too long for each token ")) << error;
  EXPECT_GE(num_left_behind(), 1);
  const auto plain = matcher(GrammarKind::Ebnf, "root ::= [a-z]+");
  plain->fill_mask(mask);
  EXPECT_TRUE(plain->accept('a')) << "others go on";
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST_F(Xgrammar, AllGrammarsTogetherTakeNotMuchLongerThanOneMay) {
  if (!has_grammar_library()) return;
  compiler_ = make_grammar_compiler(with_dashes());
  const auto dashes = static_cast<TokenId>(vocabulary().bytes.size());
  std::vector<std::unique_ptr<GrammarMatcher>> all;
  for (const char letter : std::string_view("abcdefgh"))
    all.push_back(matcher(
        GrammarKind::Ebnf,
        std::string("root ::= s\ns ::= s s | s s s | s s s s | [-] | \"") + letter + "\"\n"));
  const auto refusals = [&] {
    return std::count_if(all.begin(), all.end(), [&](const auto& each) {
      return fixtures::error_text([&] { each->accept(dashes); }) != fixtures::error_text([] {});
    });
  };
  const LongestCall found = time_until_refused(
      [&] {
        if (refusals() == std::ssize(all)) throw UserError("all of them");
      },
      100);
  EXPECT_LT(found.most, 2);
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
}

}  // namespace
}  // namespace medusa
