#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/file.h"
#include "infer/grammar/counts.h"
#include "infer/grammar/regex_syntax.h"
#include "infer/grammar/rule_counts.h"
#include "server/api/api_error.h"
#include "server/api/messages_request.h"
#include "server/api/responses_request.h"
#include "server/request/request_fields.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_words.h"
#include "tests/server/chat_template.h"

namespace medusa::fuzz {
namespace {

/// Runs nothing: requests are only read.
class NoDecoder : public Decoder {
 public:
  RequestId submit(DecodeRequest) override { return 0; }
  std::vector<FinishedRequest> step() override { return {}; }
  std::optional<DecodeStats> cancel(RequestId) override { return std::nullopt; }
  const DecodeStats* stats(RequestId) const override { return nullptr; }
  int64_t num_waiting() const override { return 0; }
  int64_t num_running() const override { return 0; }
  int64_t num_free() const override { return 0; }
  KvUse cache_use() const override { return {}; }
  const DecodeTimes& times() const override { return times_; }
  void cancel_all() override {}

 private:
  DecodeTimes times_;
};

/// The tiny model without its weights, with a template that writes calls.
const ServedModel& served() {
  static const auto tokenizer = load_tokenizer(MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf");
  static const ChatTemplate chat = ChatTemplate::of_source(fixtures::kChatTemplate, *tokenizer);
  static NoDecoder decoder;
  static const ServedModel model{.name = "tiny",
                                 .tokenizer = *tokenizer,
                                 .chat = chat,
                                 .eos = {2},
                                 .context = 256,
                                 .num_sequences = 1,
                                 .cache_tokens = 256,
                                 .decoder = decoder,
                                 .settings = {},
                                 .drafters = {},
                                 .unshared_drafters = {}};
  return model;
}

GrammarCompiler& compiler() {
  static const std::unique_ptr<GrammarCompiler> made = [] {
    GrammarVocabulary vocabulary;
    const Tokenizer& tokenizer = served().tokenizer;
    for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
      vocabulary.bytes.push_back(tokenizer.is_special(id) ? std::string() : tokenizer.bytes(id));
    vocabulary.ends = served().eos;
    return make_grammar_compiler(vocabulary);
  }();
  return *made;
}

/// Compiles it, and goes a few tokens into it.
void use(const WantedGrammar& wanted) {
  if (!has_grammar_library()) return;
  const auto matcher = compiler().compile(wanted.grammar)->make_matcher();
  const int64_t vocab_size = served().tokenizer.vocab_size();
  std::vector<int32_t> mask(static_cast<size_t>((vocab_size + 31) / 32));
  for (int32_t step = 0; step < 8 && !matcher->has_ended(); ++step) {
    matcher->fill_mask(mask);
    const auto may_come = [&](TokenId id) {
      return (mask[static_cast<size_t>(id / 32)] >> id % 32 & 1) != 0;
    };
    // Some of the tokens that the mask has; the text goes on with the first one.
    TokenId next = -1;
    for (TokenId id = step; id < vocab_size; id += next < 0 ? 1 : 29) {
      if (!may_come(id)) continue;
      if (!matcher->accept(id)) throw std::logic_error("a token of the mask is not accepted");
      matcher->rollback(1);
      if (next < 0) next = id;
    }
    if (next < 0) break;
    matcher->accept(next);
  }
}

/// Reads a text as an expression, as one inside JSON strings, and as rules. What none of these
/// takes is refused.
void read_grammars(const std::string& path) {
  const std::string text = read_file(path);
  std::optional<UserError> refusal;
  bool is_taken = false;
  const auto of_json = [](std::string_view each) { return regex_of_json_string(each); };
  using Read = std::function<std::string(std::string_view)>;
  for (const Read& read : {Read(supported_regex), Read(of_json), Read(supported_rules)}) {
    try {
      if (read(text).size() > 2 * kMostCountedBytes + text.size())
        throw std::logic_error("a grammar that has grown too much");
      is_taken = true;
    } catch (const UserError& error) {
      refusal = error;
    }
  }
  if (!is_taken) throw UserError(*refusal);
}

/// @param read  throws ApiError 400 for what a client has done wrong, and nothing else.
template <typename Read>
auto reader(Read read) {
  return [read](const std::string& path) {
    const std::string text = read_file(path);
    try {
      const nlohmann::json body = parse_body(text);
      read(body, text);
    } catch (const ApiError& error) {
      if (error.status() != 400) throw std::logic_error("another status than 400");
      throw UserError(error.what());
    }
  };
}

/// Fields of the answers are read by everybody who writes one.
void check(const CompletionRequest& request) {
  if (request.choices.empty()) throw std::logic_error("a request for no answer");
  const int32_t fewest = request.echoes.empty() ? 1 : 0;  // an echo is an answer by itself
  for (const GenerationRequest& each : request.choices)
    if (each.prompt.empty() || each.max_tokens < fewest) throw std::logic_error("an empty answer");
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> out = json_words(
        {"false", "0", "1e308", "-1e999", "9223372036854775807", "18446744073709551616", "0.5",
         "\\ud800", "\\u0000", "\xFF", "<tool_call>", "</tool_call>", "\"user\"", "\"assistant\"",
         "\"tool\"", "\"system\"", "\"auto\"", "\"required\"", "\"text\""});
    for (const char* field : {"messages",       "prompt",
                              "role",           "content",
                              "type",           "text",
                              "tools",          "function",
                              "name",           "parameters",
                              "strict",         "tool_choice",
                              "tool_calls",     "tool_call_id",
                              "arguments",      "parallel_tool_calls",
                              "max_tokens",     "n",
                              "stop",           "stop_token_ids",
                              "logit_bias",     "logprobs",
                              "top_logprobs",   "echo",
                              "stream",         "stream_options",
                              "seed",           "medusa",
                              "regex",          "grammar",
                              "steps",          "response_format",
                              "json_schema",    "schema",
                              "system",         "input",
                              "instructions",   "input_schema",
                              "tool_use",       "tool_result",
                              "tool_use_id",    "max_output_tokens",
                              "stop_sequences", "thinking",
                              "function_call",  "function_call_output",
                              "call_id",        "output",
                              "min_tokens",     "allowed_token_ids"})
      out.push_back("\"" + std::string(field) + "\":");
    return out;
  }();
  return list;
}

const std::vector<std::string>& schema_words() {
  static const std::vector<std::string> list = json_words({"false",
                                                           "\"a\"",
                                                           "0",
                                                           "1000000",
                                                           "129",
                                                           "0.5",
                                                           "\"object\"",
                                                           "\"array\"",
                                                           "\"string\"",
                                                           "\"integer\"",
                                                           "\"number\"",
                                                           "\"$ref\":",
                                                           "\"#\"",
                                                           "\"#/$defs/a\"",
                                                           "\"$defs\":",
                                                           "\"type\":",
                                                           "\"properties\":",
                                                           "\"required\":",
                                                           "\"items\":",
                                                           "\"prefixItems\":",
                                                           "\"minItems\":",
                                                           "\"maxItems\":",
                                                           "\"minLength\":",
                                                           "\"maxLength\":",
                                                           "\"pattern\":",
                                                           "\"(a|b)*c{2,9}\"",
                                                           "\"enum\":",
                                                           "\"const\":",
                                                           "\"anyOf\":",
                                                           "\"allOf\":",
                                                           "\"oneOf\":",
                                                           "\"not\":",
                                                           "\"minimum\":",
                                                           "\"maximum\":",
                                                           "\"format\":",
                                                           "\"date\"",
                                                           "\"uuid\"",
                                                           "\"additionalProperties\":",
                                                           "\"patternProperties\":",
                                                           "\"minProperties\":",
                                                           "\"uniqueItems\":"});
  return list;
}

const std::string kChat = R"({"messages": [{"role": "system", "content": "a"},
 {"role": "user", "content": [{"type": "text", "text": "b"}]},
 {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
  "function": {"name": "go", "arguments": "{\"to\": 1}"}}]},
 {"role": "tool", "tool_call_id": "c1", "content": "Done."}],
 "tools": [{"type": "function", "function": {"name": "go", "description": "d", "strict": true,
  "parameters": {"type": "object", "properties": {"to": {"type": "integer"}}}}}],
 "tool_choice": "auto", "parallel_tool_calls": false, "max_tokens": 9, "temperature": 0.5,
 "top_p": 0.9, "seed": 3, "n": 2, "stop": ["x"], "logprobs": true, "top_logprobs": 2,
 "stream": true, "stream_options": {"include_usage": true},
 "medusa": {"drafter": "none", "tree_size": 4, "steps": true}})";
const std::string kFormat = R"({"messages": [{"role": "user", "content": "a"}],
 "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema":
  {"type": "object", "properties": {"a": {"enum": [1, "b"]}}, "required": ["a"]}}}})";
const std::string kCompletion = R"({"prompt": ["a", "b"], "max_tokens": 3, "echo": true, "n": 2,
 "logprobs": 1, "logit_bias": {"5": -100}, "allowed_token_ids": [5, 6], "min_tokens": 1,
 "presence_penalty": 1, "repetition_penalty": 1.1, "stop_token_ids": [7], "min_p": 0.1,
 "top_k": 5, "return_token_ids": true, "ignore_eos": true, "medusa": {"rule": "match"}})";
const std::string kTokens = R"({"prompt": [[1, 2], [3]], "max_tokens": 1, "best_of": 1,
 "medusa": {"regex": "a+"}})";
const std::string kMessages = R"({"max_tokens": 9, "system": [{"type": "text", "text": "a"}],
 "messages": [{"role": "user", "content": "b"},
 {"role": "assistant", "content": [{"type": "text", "text": "c"},
  {"type": "tool_use", "id": "t1", "name": "go", "input": {"to": 1}}]},
 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "d"}]}],
 "tools": [{"name": "go", "description": "e", "input_schema": {"type": "object"}}],
 "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
 "stop_sequences": ["x"], "temperature": 1, "top_k": 4, "stream": true})";
const std::string kResponses = R"({"input": [{"role": "user", "content": "a"},
 {"type": "function_call", "call_id": "c1", "name": "go", "arguments": "{\"to\": 1}"},
 {"type": "function_call_output", "call_id": "c1", "output": "b"}],
 "instructions": "c", "max_output_tokens": 9, "temperature": 0,
 "tools": [{"type": "function", "name": "go", "parameters": {"type": "object"}, "strict": false}],
 "tool_choice": "auto", "text": {"format": {"type": "text"}}, "stream": true})";
const std::string kResponsesText = R"({"input": "a", "text": {"format": {"type": "json_schema",
 "name": "x", "schema": {"type": "object"}}}})";

/// A request whose answer follows a schema.
std::string with_schema(std::string_view schema) {
  return R"({"messages": [{"role": "user", "content": "a"}], "response_format": {"type":
      "json_schema", "json_schema": {"name": "x", "schema": )" +
         std::string(schema) + "}}}";
}

}  // namespace

std::vector<FuzzTarget> body_targets() {
  const auto chat = [](const nlohmann::json& body, const std::string& text) {
    check(read_chat_request(body, text, served()));
  };
  const auto completions = [](const nlohmann::json& body, const std::string& text) {
    check(read_completion_request(body, text, served()));
  };
  const auto messages = [](const nlohmann::json& body, const std::string& text) {
    check(read_messages_request(body, text, served()));
    (void)read_count_tokens_request(body, text, served());
  };
  const auto responses = [](const nlohmann::json& body, const std::string& text) {
    check(read_responses_request(body, text, served()));
  };
  const auto schema = [](const nlohmann::json& body, const std::string& text) {
    const CompletionRequest request = read_chat_request(body, text, served());
    if (request.grammar) use(*request.grammar);
  };
  return {
      {.name = "chat",
       .file = "body",
       .seeds = {kChat, kFormat},
       .tokens = words(),
       .run = reader(chat)},
      {.name = "completions",
       .file = "body",
       .seeds = {kCompletion, kTokens},
       .tokens = words(),
       .run = reader(completions)},
      {.name = "messages",
       .file = "body",
       .seeds = {kMessages},
       .tokens = words(),
       .run = reader(messages)},
      {.name = "responses",
       .file = "body",
       .seeds = {kResponses, kResponsesText},
       .tokens = words(),
       .run = reader(responses)},
      {.name = "schema",
       .file = "schema",
       .seeds =
           {R"({"type": "object", "properties": {"a": {"enum": [1, "b"]},
                     "c": {"type": "array", "items": {"type": "integer", "minimum": 3}}},
                     "required": ["a"], "additionalProperties": false})",
            R"({"anyOf": [{"type": "string", "pattern": "a+"}, {"type": "string", "maxLength": 5},
                     {"$ref": "#/$defs/d"}], "$defs": {"d": {"type": "array", "items":
                     {"$ref": "#/$defs/d"}, "maxItems": 2}}})"},
       .tokens = schema_words(),
       .run = reader(schema),
       .file_of = with_schema},
      {.name = "grammar",
       .file = "grammar",
       .seeds = {"^(?:a|[^b-d]{150,300})*x{2,}(y{1000}){2}?$",
                 "root ::= \"a\"{3} [ \\n]* (x | \"b\") {129,500}\n# c\nx ::= [a-z]{200} | x{2,}"},
       .tokens = {"{",   "}",     "{129}", "{0,999}", "{150,}",  "{1000000}", "(", ")",
                  "(?:", "(?<n>", "[",     "]",       "[^",      "-",         "|", "*",
                  "+",   "?",     "\\",    "\\x41",   "\\u00e9", "\\d",       "^", "$",
                  "\"",  " ::= ", "root",  "\n",      "#",       "é"},
       .run = read_grammars}};
}

}  // namespace medusa::fuzz
