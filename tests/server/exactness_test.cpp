// The exactness matrix: whatever a request asks for, whichever drafter proposes, whoever is decoded
// beside it and whatever the KV cache holds of its prompt, the answer is the one of plain decoding.
// A new supported drafter is tested here without a line of its own; a new field is a line in
// field_cases().
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>

#include "backbone/cpu/layout/kv_tiles.h"
#include "infer/grammar/grammar.h"
#include "tests/server/fitted_heads.h"
#include "tests/server/plain_answer.h"
#include "tests/server/served.h"

namespace medusa {
namespace {

using fixtures::ask;
using fixtures::Client;
using fixtures::http_request;
using fixtures::PlainAnswer;
using nlohmann::json;

struct FieldCase {
  std::string name;
  json fields;
  json calls{};  // of a chat that must call tools: the grammar of its answer; null: a completion
};

/// Tools, and the grammar of one call of them as a structural tag of xgrammar.
FieldCase forced_call(const std::string& name, json fields, bool is_named) {
  const json go = json::parse(R"({"type": "object", "properties": {"to": {"enum": ["Rome", "Oslo"]},
      "by": {"enum": ["car", "day"]}}, "required": ["to", "by"], "additionalProperties": false})");
  const json eat = json::parse(R"({"type": "object", "properties": {"it": {"type": "boolean"}},
      "required": ["it"], "additionalProperties": false})");
  json tags = json::array();
  for (const auto& [function, schema] : {std::pair{"go", go}, std::pair{"eat", eat}}) {
    fields["tools"].push_back(
        {{"type", "function"}, {"function", {{"name", function}, {"parameters", schema}}}});
    if (is_named && function != std::string("eat")) continue;
    tags.push_back(
        {{"type", "tag"},
         {"begin", "<tool_call>\n{\"name\": \"" + std::string(function) + "\", \"arguments\": "},
         {"content", {{"type", "json_schema"}, {"json_schema", schema}, {"max_whitespace_cnt", 1}}},
         {"end", "}\n</tool_call>"}});
  }
  if (is_named)
    fields["tool_choice"] = {{"type", "function"}, {"function", {{"name", "eat"}}}};
  else
    fields["tool_choice"] = "required";
  fields["parallel_tool_calls"] = false;
  json grammar{{"type", "structural_tag"},
               {"format",
                {{"type", "tags_with_separator"},
                 {"tags", tags},
                 {"separator", "\n"},
                 {"at_least_one", true},
                 {"stop_after_first", true}}}};
  return {name, std::move(fields), std::move(grammar)};
}

/// Some bytes of a text, and those that complete its characters.
std::string part_of(const std::string& text, size_t begin, size_t size) {
  const auto to_character = [&text](size_t at) {
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  };
  begin = to_character(begin);
  return text.substr(begin, to_character(begin + size) - begin);
}

/// @param text  that the model writes when it is asked for nothing.
std::vector<FieldCase> field_cases(const std::string& text) {
  const json warm{{"temperature", 0.9}, {"seed", 7}};
  const auto and_warm = [&warm](json fields) {
    fields.update(warm);
    return fields;
  };
  std::vector<FieldCase> out{
      {"nothing", json::object()},
      {"seed", warm},
      {"top_p", and_warm({{"top_p", 0.7}})},
      {"top_k", and_warm({{"top_k", 5}})},
      {"min_p", and_warm({{"min_p", 0.1}})},
      {"presence_penalty", {{"presence_penalty", 1.5}}},
      {"frequency_penalty", {{"frequency_penalty", 0.6}}},
      {"repetition_penalty", {{"repetition_penalty", 1.3}}},
      // Tokens that come again and again until their counts forbid it: counts inside a path decide.
      {"frequency_penalty, biased",
       {{"frequency_penalty", 0.4}, {"logit_bias", {{"278", 14}, {"343", 14}, {"388", 12}}}}},
      {"penalties, sampled",
       and_warm({{"presence_penalty", -0.5}, {"frequency_penalty", 0.4}, {"min_p", 0.02}})},
      {"logit_bias", {{"logit_bias", {{"300", 3.5}, {"301", -100}, {"259", 2}}}}},
      {"allowed_token_ids", and_warm({{"allowed_token_ids", json::array()}})},
      {"min_tokens", {{"min_tokens", 30}, {"stop", {part_of(text, 4, 3)}}}},
      {"stop", {{"stop", {part_of(text, text.size() / 2, 4), "never in it"}}}},
      {"stop_token_ids", and_warm({{"stop_token_ids", {264, 270, 281}}})},
      {"max_tokens", {{"max_tokens", 5}}},
      {"n", and_warm({{"n", 3}})},
      {"echo", {{"echo", true}, {"max_tokens", 12}}},
      {"tree_size", {{"medusa", {{"tree_size", 3}}}}},
      {"everything", and_warm({{"presence_penalty", 0.3},
                               {"frequency_penalty", 0.2},
                               {"repetition_penalty", 1.1},
                               {"logit_bias", {{"265", 1.5}}},
                               {"top_k", 50},
                               {"top_p", 0.95},
                               {"min_p", 0.01},
                               {"min_tokens", 20},
                               {"n", 2},
                               {"echo", true},
                               {"stop", {part_of(text, text.size() / 2, 4)}}})},
  };
  if (has_grammar_library()) {
    out.push_back({"regex", {{"medusa", {{"regex", "( [a-z]+){4,9}\\."}}}}});
    out.push_back(
        {"regex, sampled, penalties",
         and_warm(
             {{"medusa", {{"regex", "([A-Z][a-z]+ ?)+"}}}, {"presence_penalty", 0.5}, {"n", 2}})});
    const json text_of{{"type", "string"}, {"maxLength", 12}};
    const json schema{{"type", "object"},
                      {"properties", {{"age", {{"type", "integer"}}}, {"name", text_of}}},
                      {"required", {"age", "name"}}};
    out.push_back(
        {"json_schema", and_warm({{"response_format",
                                   {{"type", "json_schema"},
                                    {"json_schema", {{"name", "person"}, {"schema", schema}}}}}})});
    out.push_back(forced_call("forced tool call", {{"max_tokens", 90}}, false));
    out.push_back(
        forced_call("named tool, sampled",
                    and_warm({{"max_tokens", 90}, {"n", 2}, {"logit_bias", {{"265", 1}}}}), true));
  }
  for (FieldCase& each : out) {
    if (each.fields.contains("allowed_token_ids"))
      for (int id = 0; id < 512; ++id)
        if (id % 5 != 0) each.fields["allowed_token_ids"].push_back(id);
    json fields{{"max_tokens", 48}, {"logprobs", 2}, {"return_token_ids", true}};
    if (!each.calls.is_null()) fields["logprobs"] = true;
    fields.update(each.fields);
    each.fields = std::move(fields);
  }
  return out;
}

/// Where a request's prompt is longer than what enters in one pass, and where it is not. Both end
/// in the middle of the same sentence, which the model goes on with.
constexpr size_t kShort = 40, kLong = HostDecoder::kPromptRows + 37;

class Exactness : public testing::TestWithParam<const DrafterSpec*> {
 protected:
  static void SetUpTestSuite() { make(false); }

  /// @param shares  as TinyServed's.
  static void make(bool shares) {
    tiny_ = new fixtures::TinyServed(kSequences, std::nullopt, shares);
    const auto story = fixtures::own_text(tiny_->loaded(), 25);
    for (const size_t size : {kShort, kLong}) {  // a text that repeats itself, so that drafts stand
      std::vector<TokenId> prompt{1};
      while (prompt.size() < size) {
        const size_t more = std::min(story.size(), size - prompt.size());
        prompt.insert(prompt.end(), story.begin(), story.begin() + static_cast<int64_t>(more));
      }
      prompts_[size] = prompt;
      const auto text =
          fixtures::plain_answer(tiny_->loaded(), {{"prompt", prompt}, {"max_tokens", 48}}).text;
      cases_[size] = field_cases(text);
      for (FieldCase& each : cases_[size]) {
        if (shares)  // a random model writes bytes that are no text
          for (const char* of_text : {"stop", "echo"}) each.fields.erase(of_text);
        json body = each.fields;
        body["prompt"] = prompt_of(each, size);
        if (!each.calls.is_null()) body["structural_tag"] = each.calls;
        const auto count = body.value("n", uint64_t{1});
        const auto first_seed = body.value("seed", uint64_t{1});
        for (uint64_t i = 0; i < count; ++i) {
          body["seed"] = first_seed + i;
          expected_[size][each.name].push_back(fixtures::plain_answer(tiny_->loaded(), body));
        }
      }
    }
  }
  static void TearDownTestSuite() {
    delete std::exchange(tiny_, nullptr);
    prompts_ = {};
    cases_ = {};
    expected_ = {};
  }

  void forget_all() {
    server_.reset();
    tiny_->forget_ended();
    server_.emplace(tiny_->model());
  }

  /// Of a chat: less than the prompt, so that a call has room behind it.
  static std::string text_of_prompt(size_t size) {
    const auto rest = std::span(prompts_[size]).subspan(size > kShort ? 20 : 1);
    return tiny_->loaded().tokenizer->decode(rest);
  }

  /// The tokens that a case goes on from.
  static std::vector<TokenId> prompt_of(const FieldCase& each, size_t size) {
    if (each.calls.is_null()) return prompts_[size];
    return tiny_->chat().encode(*tiny_->loaded().tokenizer, {{"user", text_of_prompt(size)}},
                                each.fields["tools"].dump());
  }

  /// Full blocks before the last token of a prompt that was computed before. One whose
  /// log-probabilities are asked for is computed, and so is each where rows depend on neighbors.
  static int64_t cacheable(const FieldCase& each, size_t size) {
    if (!tiny_->shares() || each.fields.value("echo", false)) return 0;
    return (std::ssize(prompt_of(each, size)) - 1) / kKvBlockRows * kKvBlockRows;
  }

  /// A request that leaves a case's prompt in the cache.
  static json before_of(const FieldCase& each, size_t size, json fields) {
    fields["prompt"] = prompt_of(each, size);
    return fields;
  }

  json body_of(const FieldCase& each, size_t size) const {
    json body{{"seed", 1}, {"temperature", 0}};
    body.update(each.fields);
    if (each.calls.is_null())
      body["prompt"] = prompts_[size];
    else
      body["messages"] = {{{"role", "user"}, {"content", text_of_prompt(size)}}};
    body["medusa"]["drafter"] = enum_name(GetParam()->kind);
    return body;
  }

  /// Asks, and compares every byte of the answer.
  /// @returns  tokens of the prompt that the cache held.
  int64_t expect_plain(const FieldCase& each, size_t size) const {
    const json body = body_of(each, size);
    const auto reply = ask(server_->port(), "POST", path_of(each), body.dump());
    EXPECT_EQ(reply.status, 200) << each.name << ": " << reply.body;
    if (reply.status != 200) return -1;
    const json answer = reply.json();
    EXPECT_FALSE(answer.contains("medusa")) << answer["medusa"] << ": a field was not known";
    const auto& plain = expected_[size].at(each.name);
    EXPECT_EQ(answer["choices"].size(), plain.size()) << each.name;
    for (size_t i = 0; i < plain.size() && i < answer["choices"].size(); ++i)
      if (each.calls.is_null())
        expect_choice(each, answer["choices"][i], plain[i]);
      else
        expect_call(each, answer["choices"][i], plain[i]);
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
  }

  static std::string path_of(const FieldCase& each) {
    return each.calls.is_null() ? "/v1/completions" : "/v1/chat/completions";
  }

  static void expect_call(const FieldCase& each, const json& choice, const PlainAnswer& plain) {
    EXPECT_EQ(choice["token_ids"], json(plain.tokens)) << each.name;
    ASSERT_EQ(choice["logprobs"]["content"].size(), plain.logprobs.size()) << each.name;
    for (size_t i = 0; i < plain.logprobs.size(); ++i)
      EXPECT_EQ(choice["logprobs"]["content"][i]["logprob"], plain.logprobs[i]) << each.name;
    const std::string open = "<tool_call>", close = "</tool_call>";
    ASSERT_TRUE(plain.text.starts_with(open) && plain.text.ends_with(close)) << plain.text;
    const json call =
        json::parse(plain.text.substr(open.size(), plain.text.size() - open.size() - close.size()));
    EXPECT_EQ(choice["finish_reason"], "tool_calls") << each.name;
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U) << choice;
    const json& function = choice["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(function["name"], call["name"]) << each.name;
    EXPECT_EQ(json::parse(function["arguments"].get<std::string>()), call["arguments"]);
    EXPECT_TRUE(choice["message"]["content"].is_null());
  }

  void expect_choice(const FieldCase& each, const json& choice, const PlainAnswer& plain) const {
    const bool echo = each.fields.value("echo", false);
    const auto& prompt = prompts_[plain.prompt_logprobs.size() + 1];
    const std::string begin = echo ? tiny_->loaded().tokenizer->decode(prompt) : "";
    EXPECT_EQ(choice["text"], begin + plain.text) << each.name;
    EXPECT_EQ(choice["finish_reason"], plain.reason) << each.name;
    EXPECT_EQ(choice["token_ids"], json(plain.tokens)) << each.name;
    json logprobs = json::array();
    if (echo) {
      logprobs.push_back(nullptr);
      for (const double p : plain.prompt_logprobs) logprobs.push_back(p);
    }
    for (const double p : plain.logprobs) logprobs.push_back(p);
    EXPECT_EQ(choice["logprobs"]["token_logprobs"], logprobs) << each.name;
  }

  /// Also that the cache held what it can of each prompt.
  void expect_plain_beside_others();
  void expect_plain_after_others();

  static constexpr int32_t kSequences = 16;
  static fixtures::TinyServed* tiny_;
  static inline std::map<size_t, std::vector<TokenId>> prompts_;
  static inline std::map<size_t, std::vector<FieldCase>> cases_;
  static inline std::map<size_t, std::map<std::string, std::vector<PlainAnswer>>> expected_;
  std::optional<fixtures::RunningServer> server_{std::in_place, tiny_->model()};
};

fixtures::TinyServed* Exactness::tiny_ = nullptr;

std::vector<const DrafterSpec*> supported_drafters() {
  std::vector<const DrafterSpec*> out;
  for (const DrafterSpec* each : all_drafters())
    if (each->level == SupportLevel::Supported) out.push_back(each);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Drafters, Exactness, testing::ValuesIn(supported_drafters()),
                         [](const auto& each) { return std::string(enum_name(each.param->kind)); });

TEST_P(Exactness, Alone) {
  for (const FieldCase& each : cases_[kShort]) {
    forget_all();
    EXPECT_EQ(expect_plain(each, kShort), 0) << each.name;
  }
}

TEST_P(Exactness, AmongTheOthersAtTheSameTime) {
  std::vector<std::future<void>> all;
  for (const size_t size : {kShort, kLong})
    for (const FieldCase& each : cases_[size])
      all.push_back(
          std::async(std::launch::async, [this, &each, size] { expect_plain(each, size); }));
  for (auto& each : all) each.get();
}

void Exactness::expect_plain_beside_others() {
  const json body{{"max_tokens", 60}, {"stream", true}, {"ignore_eos", true}};
  for (const FieldCase& each : cases_[kLong]) {
    forget_all();
    Client beside(server_->port());
    beside.send(http_request("POST", "/v1/completions", before_of(each, kLong, body).dump()));
    beside.read_some(400);  // its prompt is in the cache
    EXPECT_EQ(expect_plain(each, kLong), cacheable(each, kLong)) << each.name;
  }
}

void Exactness::expect_plain_after_others() {
  for (const size_t size : {kShort, kLong})
    for (const FieldCase& each : cases_[size]) {
      forget_all();
      const json first = before_of(each, size, {{"max_tokens", 1}});
      ASSERT_EQ(ask(server_->port(), "POST", "/v1/completions", first.dump()).status, 200);
      EXPECT_EQ(expect_plain(each, size), cacheable(each, size)) << each.name;
    }
}

TEST_P(Exactness, BesideAnotherRequestWithTheSameBeginning) { expect_plain_beside_others(); }
TEST_P(Exactness, AfterARequestThatBeganAlike) { expect_plain_after_others(); }

/// Over a model whose sequences share what they begin with.
class ExactnessBehindTheCache : public Exactness {
 protected:
  static void SetUpTestSuite() { make(true); }
};

INSTANTIATE_TEST_SUITE_P(Drafters, ExactnessBehindTheCache, testing::ValuesIn(supported_drafters()),
                         [](const auto& each) { return std::string(enum_name(each.param->kind)); });

TEST_P(ExactnessBehindTheCache, BesideAnotherRequestWithTheSameBeginning) {
  expect_plain_beside_others();
}
TEST_P(ExactnessBehindTheCache, AfterARequestThatBeganAlike) { expect_plain_after_others(); }

TEST_P(Exactness, WithThePromptInChunks) {
  for (const FieldCase& each : cases_[kLong]) {
    forget_all();
    EXPECT_EQ(expect_plain(each, kLong), 0) << each.name;
  }
}

/// The matrix would say nothing if no draft stood. A grammar may forbid all that a lookup finds.
TEST_P(Exactness, DraftsStandUnderEveryField) {
  if (GetParam()->kind == DrafterKind::None) return;
  for (const FieldCase& each : cases_[kLong]) {
    if (each.name.starts_with("regex, sampled") || each.name == "json_schema") continue;
    if (!each.calls.is_null()) continue;
    const auto reply = ask(server_->port(), "POST", "/v1/completions", body_of(each, kLong).dump());
    const json stats = reply.json()["metrics"]["speculative_decoding"];
    EXPECT_GT(stats["num_draft_tokens"], 0) << each.name;
    EXPECT_GT(stats["num_accepted_draft_tokens"], 0) << each.name;
  }
}

}  // namespace
}  // namespace medusa
