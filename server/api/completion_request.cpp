#include "server/api/completion_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/tokenizer/text_stream.h"
#include "server/api/api_error.h"
#include "server/request/chat_messages.h"
#include "server/request/request_reader.h"
#include "server/tool_calls/tool_fields.h"

namespace medusa {
namespace {

constexpr int64_t kMostChoices = 16;  // answers of one request
constexpr int64_t kMostLogprobs = 20;

/// How many answers each prompt gets, and what a stream tells besides.
int64_t read_openai_fields(RequestReader& reader, const ServedModel& model) {
  RequestFields& fields = reader.fields();
  expect_served_model(fields, model);
  CompletionRequest& out = reader.out();
  if (auto options = fields.object("stream_options")) {
    out.include_usage = options->boolean("include_usage").value_or(false);
    out.continuous_usage = options->boolean("continuous_usage_stats").value_or(false);
    options->warn_of_unknown();
  }
  out.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  fields.expect_unused("return_tokens_as_token_ids", false);
  fields.expect_unused("stop_sequences", nlohmann::json::array());
  const int64_t count = fields.integer("n", 1, kMostChoices).value_or(1);
  if (fields.integer("best_of", 1, INT32_MAX).value_or(count) != count)
    fields.refuse("best_of", "as many as n: every answer is returned");
  return count;
}

struct CompletionPrompt {
  std::vector<TokenId> tokens;
  std::optional<std::string> text;  // as it was sent; nothing: token ids were
};

/// The prompts of a completion: a text, token ids, or a list of either.
std::vector<CompletionPrompt> read_prompts_of(RequestFields& fields, const ServedModel& model) {
  const std::string expected =
      "a text, a list of texts, a list of token ids, or a list of such lists; none empty";
  if (!fields.has("prompt")) fields.refuse("prompt", expected);
  const auto ids_of = [&](const nlohmann::json& list) {
    std::vector<TokenId> ids;
    for (const nlohmann::json& id : list) {
      if (!id.is_number_integer() || id < 0 || id >= model.tokenizer.vocab_size())
        fields.refuse("prompt", fmt::format("token ids from 0 to {}, or texts",
                                            model.tokenizer.vocab_size() - 1));
      ids.push_back(id.get<TokenId>());
    }
    return ids;
  };
  const bool adds_bos = fields.boolean("add_special_tokens").value_or(true) &&
                        model.tokenizer.adds_bos() && model.tokenizer.bos();
  const auto read_prompt = [&](const nlohmann::json& prompt) {
    CompletionPrompt out;
    if (prompt.is_string()) {
      out.text = prompt.get<std::string>();
      expect_short_text(out.text->size(), "prompt", model);
      out.tokens = model.tokenizer.encode(*out.text, true);
      if (adds_bos) out.tokens.insert(out.tokens.begin(), *model.tokenizer.bos());
    } else if (prompt.is_array()) {
      out.tokens = ids_of(prompt);
      if (std::ssize(out.tokens) >= model.context)  // before they are copied for each answer
        throw long_prompt(std::ssize(out.tokens), model.context, "prompt");
    }
    if (out.tokens.empty()) fields.refuse("prompt", expected);
    return out;
  };
  const nlohmann::json& prompt = fields.at("prompt");
  const bool is_one = !prompt.is_array() || (!prompt.empty() && prompt[0].is_number());
  if (is_one) return {read_prompt(prompt)};
  if (prompt.empty() || prompt.size() > 64) fields.refuse("prompt", "1 to 64 prompts");
  std::vector<CompletionPrompt> out;
  for (const nlohmann::json& each : prompt) out.push_back(read_prompt(each));
  return out;
}

/// As it was sent; of token ids, special ones and U+FFFD for what is no character included.
std::string echo_of(const CompletionPrompt& prompt, const Tokenizer& tokenizer) {
  if (prompt.text) return *prompt.text;
  TextStream text(tokenizer, /*show_special=*/true);
  std::string out;
  for (const TokenId id : prompt.tokens) out += text.add(id);
  return out + text.finish();
}

/// @param otherwise  where the request does not say it.
void read_max_tokens(RequestReader& reader, int64_t fewest, int64_t otherwise) {
  const auto older = reader.fields().integer("max_tokens", fewest, INT32_MAX);
  const auto most = reader.fields().integer("max_completion_tokens", fewest, INT32_MAX);
  if (older && most && *older != *most)
    reader.fields().warn("max_tokens", "max_completion_tokens is there, too, ignored");
  reader.set_max_tokens(most.value_or(older.value_or(otherwise)),
                        most ? "max_completion_tokens" : "max_tokens");
}

}  // namespace

CompletionRequest read_chat_request(const nlohmann::json& body, std::string_view text,
                                    const ServedModel& model) {
  RequestReader reader(body, model);
  RequestFields& fields = reader.fields();
  reader.out().is_chat = true;
  const int64_t count = read_openai_fields(reader, model);
  read_max_tokens(reader, 1, INT32_MAX);
  fields.expect_unused("add_special_tokens", false);  // the template writes what it needs
  fields.expect_unused("documents", nlohmann::json::array());
  fields.expect_unused("echo", false);
  const bool wants = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMostLogprobs);
  if (top && !wants) fields.refuse("top_logprobs", "logprobs to be true beside it");
  if (wants) reader.each().logprobs = top.value_or(0);
  OrderedBody ordered(text);
  const ToolSet tools = read_tool_fields(fields, ordered);
  reader.set_grammar(read_response_format(fields, ordered), tools);
  const auto messages = read_chat_messages(fields, "messages", model.chat.takes_tools());
  reader.add_chat(messages, tools, count, "messages");
  return reader.finish();
}

CompletionRequest read_completion_request(const nlohmann::json& body, std::string_view text,
                                          const ServedModel& model) {
  RequestReader reader(body, model);
  RequestFields& fields = reader.fields();
  const int64_t count = read_openai_fields(reader, model);
  fields.expect_unused("tools", nlohmann::json::array());
  fields.expect_unused("tool_choice", "none");
  fields.ignore({"parallel_tool_calls"});
  OrderedBody ordered(text);
  reader.set_grammar(read_response_format(fields, ordered));
  const bool echo = fields.boolean("echo").value_or(false);
  const int64_t fewest = echo ? 0 : 1;  // an echo is an answer by itself
  read_max_tokens(reader, fewest, 16);
  GenerationRequest& each = reader.each();
  each.logprobs = fields.integer("logprobs", 0, kMostLogprobs);
  each.prompt_logprobs = echo && each.logprobs;
  for (const CompletionPrompt& prompt : read_prompts_of(fields, model))
    reader.add_choices(prompt.tokens, count, echo ? echo_of(prompt, model.tokenizer) : "");
  return reader.finish();
}

}  // namespace medusa
