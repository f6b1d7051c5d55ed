#include "server/api/completion_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/utf8.h"

namespace medusa {
namespace {

using nlohmann::json;

/// A token's text and bytes, as OpenAI gives them.
json token_json(const Tokenizer& tokenizer, TokenId id, double logprob) {
  const std::string bytes = tokenizer.bytes(id);
  json list = json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {{"token", bytes}, {"logprob", logprob}, {"bytes", std::move(list)}};
}

json chat_logprobs(const Tokenizer& tokenizer, const std::vector<GeneratedToken>& tokens) {
  json content = json::array();
  for (const GeneratedToken& token : tokens) {
    json row = token_json(tokenizer, token.id, token.logprob);
    row["top_logprobs"] = json::array();
    for (const auto& [id, logprob] : token.most_probable)
      row["top_logprobs"].push_back(token_json(tokenizer, id, logprob));
    content.push_back(std::move(row));
  }
  return {{"content", std::move(content)}};
}

/// A token's text as OpenAI writes it where it is a name: one that is no text by itself is told by
/// its bytes, so that two of them are not the same name.
std::string token_name(const Tokenizer& tokenizer, TokenId id) {
  std::string bytes = tokenizer.bytes(id);
  if (is_valid_utf8(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

/// Characters that begin in some bytes.
int64_t num_characters(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

/// The lists of /v1/completions, to which a token is added.
/// @param offset  characters of the text before it.
void add_text_logprobs(const Tokenizer& tokenizer, const GeneratedToken& token, bool has_logprob,
                       int64_t offset, json& out) {
  out["tokens"].push_back(token_name(tokenizer, token.id));
  out["text_offset"].push_back(offset);
  if (!has_logprob) {
    out["token_logprobs"].push_back(nullptr);
    out["top_logprobs"].push_back(nullptr);
    return;
  }
  out["token_logprobs"].push_back(token.logprob);
  json top = json::object();
  for (const auto& [id, logprob] : token.most_probable) top[token_name(tokenizer, id)] = logprob;
  out["top_logprobs"].push_back(std::move(top));
}

/// The same of the tokens of an echo. Offsets are counted from its end: a bos, and the space that a
/// tokenizer puts first, are in no text that was sent.
void add_echo_logprobs(const Tokenizer& tokenizer, const std::vector<GeneratedToken>& prompt,
                       const std::string& echo, json& out) {
  TextStream text(tokenizer, /*show_special=*/true);
  std::vector<int64_t> begins;
  int64_t length = 0;
  for (const GeneratedToken& token : prompt) {
    begins.push_back(length);
    length += num_characters(text.add(token.id));
  }
  const int64_t surplus = length + num_characters(text.finish()) - num_characters(echo);
  for (size_t i = 0; i < prompt.size(); ++i)  // nothing predicts the first token of a prompt
    add_text_logprobs(tokenizer, prompt[i], i > 0, std::max<int64_t>(0, begins[i] - surplus), out);
}

json ids_of(const std::vector<GeneratedToken>& tokens) {
  json out = json::array();
  for (const GeneratedToken& token : tokens) out.push_back(token.id);
  return out;
}

json step_json(const Tokenizer& tokenizer, const StepTrace& step) {
  json out{{"tokens", json::array()},
           {"parents", json::array()},
           {"drafters", json::array()},
           {"accepted", step.accepted},
           {"next", tokenizer.bytes(step.next)}};
  for (const StepTrace::Node& node : step.nodes) {
    out["tokens"].push_back(tokenizer.bytes(node.token));
    out["parents"].push_back(node.parent);
    out["drafters"].push_back(enum_name(node.drafter));
  }
  return out;
}

/// A call in OpenAI's form.
json call_json(const ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

/// What came of a chat's answer, as the delta of a chunk.
json delta_of(const std::vector<AnswerPart>& parts, int calls_before) {
  json out{{"content", ""}};
  for (const AnswerPart& part : parts)
    if (part.call) {
      json call = call_json(*part.call);
      call["index"] = calls_before++;
      out["tool_calls"].push_back(std::move(call));
    } else {
      out["content"] = out["content"].get_ref<const std::string&>() + part.text;
    }
  return out;
}

/// A chat's end: calls are a reason of their own, unless the answer was cut off behind them.
std::string reason_of(const GenerationEnd& end, int num_calls) {
  const std::string reason = end.reason();
  return num_calls > 0 && reason == "stop" ? "tool_calls" : reason;
}

}  // namespace

CompletionAnswer::CompletionAnswer(const CompletionRequest& request, const ServedModel& model,
                                   std::string id)
    : request_(request),
      model_(model),
      id_((request.is_chat ? "chatcmpl-" : "cmpl-") + id),
      created_(static_cast<int64_t>(std::time(nullptr))),
      cached_tokens_(request.choices.size() / static_cast<size_t>(request.choices_per_prompt)) {
  for (size_t i = 0; i < request.choices.size(); ++i)
    choices_.emplace_back(model.tokenizer, request.may_call, fmt::format("call_{}{:02x}", id, i));
}

json CompletionAnswer::head(bool chunk) const {
  json out{{"id", id_}, {"created", created_}, {"model", model_.name}};
  out["object"] = !request_.is_chat ? "text_completion"
                  : chunk           ? "chat.completion.chunk"
                                    : "chat.completion";
  return out;
}

json CompletionAnswer::logprobs(size_t choice, const std::vector<GeneratedToken>& prompt,
                                const std::vector<GeneratedToken>& tokens) {
  if (request_.is_chat) return chat_logprobs(model_.tokenizer, tokens);
  json out;
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    out[list] = json::array();
  Choice& each = choices_[choice];
  if (!prompt.empty()) {
    add_echo_logprobs(model_.tokenizer, prompt, request_.echoes[choice], out);
    each.offset = num_characters(request_.echoes[choice]);
  }
  for (const GeneratedToken& token : tokens) {
    add_text_logprobs(model_.tokenizer, token, true, each.offset, out);
    each.offset += num_characters(each.before.add(token.id));
  }
  return out;
}

json CompletionAnswer::usage() const {
  int64_t cached_tokens = 0;
  for (const auto& each : cached_tokens_) cached_tokens += each.value_or(0);
  return {{"prompt_tokens", request_.prompt_tokens},
          {"completion_tokens", num_tokens_},
          {"total_tokens", request_.prompt_tokens + num_tokens_},
          {"prompt_tokens_details", {{"cached_tokens", cached_tokens}}}};
}

std::string CompletionAnswer::event(json choice, bool with_usage) {
  json out = head(true);
  // Not in an event of its own: clients read the choice of each but the last.
  if (!request_.warnings.empty() && !std::exchange(warned_, true))
    out["medusa"] = {{"warnings", request_.warnings}};
  if (request_.is_chat && request_.return_token_ids && !std::exchange(told_prompt_, true))
    out["prompt_token_ids"] = request_.choices[0].prompt;
  out["choices"] = json::array({std::move(choice)});
  if (with_usage)
    out["usage"] = usage();
  else if (request_.include_usage)
    out["usage"] = nullptr;
  return sent_event(out);
}

std::string CompletionAnswer::first_events() {
  std::string out;
  for (size_t i = 0; i < choices_.size(); ++i) out += first_chunk(i);
  return out;
}

std::string CompletionAnswer::first_chunk(size_t choice) {
  json out{{"index", choice}, {"finish_reason", nullptr}};
  const bool echoes =  // else it waits for the log-probabilities
      !request_.is_chat && !request_.choices[choice].prompt_logprobs;
  if (request_.is_chat)
    out["delta"] = {{"role", "assistant"}, {"content", ""}};
  else if (request_.return_token_ids || (echoes && !request_.echoes[choice].empty()))
    out["text"] = echoes ? request_.echoes[choice] : "";
  else
    return {};
  if (request_.return_token_ids && !request_.is_chat)
    out["prompt_token_ids"] = request_.choices[choice].prompt;
  return event(std::move(out), request_.continuous_usage);
}

std::string CompletionAnswer::events(size_t choice, const GenerationPiece& piece) {
  count(piece);
  const bool has_tokens = !piece.tokens.empty() || !piece.prompt.empty();
  const bool wants_tokens =
      (request_.return_token_ids || request_.choices[choice].logprobs) && has_tokens;
  ToolCallReader& reader = choices_[choice].reader;
  const int calls_before = reader.num_calls();
  const auto parts = reader.add(piece.text);
  if (parts.empty() && !wants_tokens && !piece.step) return {};
  json out{{"index", choice}, {"finish_reason", nullptr}};
  if (request_.is_chat)
    out["delta"] = delta_of(parts, calls_before);
  else
    out["text"] = (piece.prompt.empty() ? "" : request_.echoes[choice]) + piece.text;
  if (request_.choices[choice].logprobs && has_tokens)
    out["logprobs"] = logprobs(choice, piece.prompt, piece.tokens);
  if (request_.return_token_ids) out["token_ids"] = ids_of(piece.tokens);
  if (piece.step) out["medusa"] = {{"step", step_json(model_.tokenizer, *piece.step)}};
  return event(std::move(out), request_.continuous_usage);
}

std::string CompletionAnswer::events(size_t choice, const GenerationEnd& end) {
  count(choice, end.stats);
  ToolCallReader& reader = choices_[choice].reader;
  const int calls_before = reader.num_calls();
  const auto rest = reader.finish();
  json out{{"index", choice}, {"finish_reason", reason_of(end, reader.num_calls())}};
  if (!request_.is_chat)
    out["text"] = "";
  else
    out["delta"] = rest.empty() ? json::object() : delta_of(rest, calls_before);
  return event(std::move(out), request_.continuous_usage);
}

std::string CompletionAnswer::last_events() {
  const std::string done = "data: [DONE]\n\n";
  if (!request_.include_usage) return done;
  json out = head(true);
  out["choices"] = json::array();
  out["usage"] = usage();
  out["metrics"] = {{"speculative_decoding", acceptance()}};
  return sent_event(out) + done;
}

std::string CompletionAnswer::failure_events(const ApiError& error) {
  return sent_event(error.json());
}

void CompletionAnswer::take(Choice& choice, std::vector<AnswerPart> parts) {
  for (AnswerPart& part : parts)
    if (part.call)
      choice.calls.push_back(call_json(*part.call));
    else
      choice.text += part.text;
}

void CompletionAnswer::add(size_t choice, const GenerationPiece& piece) {
  count(piece);
  Choice& out = choices_[choice];
  take(out, out.reader.add(piece.text));
  out.prompt.insert(out.prompt.end(), piece.prompt.begin(), piece.prompt.end());
  out.tokens.insert(out.tokens.end(), piece.tokens.begin(), piece.tokens.end());
  if (piece.step) out.steps.push_back(*piece.step);
}

void CompletionAnswer::add(size_t choice, const GenerationEnd& end) {
  Choice& out = choices_[choice];
  take(out, out.reader.finish());
  out.reason = reason_of(end, out.reader.num_calls());
  count(choice, end.stats);
}

void CompletionAnswer::count(const GenerationPiece& piece) {
  num_tokens_ += std::ssize(piece.tokens);
  if (!piece.step || choices_.size() > 1) return;
  accepted_.push_back(std::ssize(piece.step->accepted));
  drafted_.push_back(std::ssize(piece.step->nodes) - 1);
}

/// What became of the drafts; step by step, too, where a single answer is traced.
json CompletionAnswer::acceptance() const {
  json out = acceptance_json(total_);
  if (accepted_.empty()) return out;
  out["per_step_accepted"] = accepted_;
  out["per_step_drafted"] = drafted_;
  return out;
}

void CompletionAnswer::count(size_t choice, const DecodeStats& stats) {
  auto& cached = cached_tokens_.at(choice / static_cast<size_t>(request_.choices_per_prompt));
  cached = std::min(cached.value_or(stats.cached_prompt_tokens), stats.cached_prompt_tokens);
  total_.steps += stats.steps;
  total_.emitted += stats.emitted;
  total_.proposed += stats.proposed;
  total_.accepted += stats.accepted;
  auto& sums = total_.accepted_per_step;
  sums.resize(std::max(sums.size(), stats.accepted_per_step.size()), 0);
  for (size_t n = 0; n < stats.accepted_per_step.size(); ++n) sums[n] += stats.accepted_per_step[n];
}

std::string CompletionAnswer::whole() {
  json out = head(false);
  if (request_.is_chat && request_.return_token_ids)
    out["prompt_token_ids"] = request_.choices[0].prompt;
  out["choices"] = json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& each = choices_[i];
    json choice{{"index", i}, {"finish_reason", each.reason}, {"logprobs", nullptr}};
    if (request_.is_chat) {
      json& message = choice["message"];
      message = {{"role", "assistant"}, {"content", each.text}};
      if (!each.calls.is_null()) message["tool_calls"] = each.calls;
      if (!each.calls.is_null() && each.text.empty()) message["content"] = nullptr;
    } else {
      choice["text"] = request_.echoes[i] + each.text;
    }
    if (request_.choices[i].logprobs) choice["logprobs"] = logprobs(i, each.prompt, each.tokens);
    if (request_.return_token_ids) {
      choice["token_ids"] = ids_of(each.tokens);
      if (!request_.is_chat) choice["prompt_token_ids"] = request_.choices[i].prompt;
    }
    if (request_.steps) {
      json& steps = choice["medusa"]["steps"] = json::array();
      for (const StepTrace& step : each.steps) steps.push_back(step_json(model_.tokenizer, step));
    }
    out["choices"].push_back(std::move(choice));
  }
  out["usage"] = usage();
  out["metrics"] = {{"speculative_decoding", acceptance()}};
  if (!request_.warnings.empty()) out["medusa"] = {{"warnings", request_.warnings}};
  return json_text(out);
}

}  // namespace medusa
