#include "server/api/messages_answer.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_text.h"

namespace medusa {
namespace {

using nlohmann::json;

const char* messages_error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

json tool_use(const ToolCall& call) {
  return {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}};
}

/// With one more member in front: its value's JSON stays as it is written, all digits of its
/// numbers, too.
std::string with_member(const char* key, const std::string& value, const json& object) {
  return fmt::format("{{\"{}\":{},{}", key, value, json_text(object).substr(1));
}

std::string block_of(const AnswerPart& part) {
  if (part.call) return with_member("input", part.call->arguments, tool_use(*part.call));
  return json_text(json{{"type", "text"}, {"text", part.text}});
}

}  // namespace

json messages_error(const ApiError& error) {
  return {{"type", "error"},
          {"error", {{"type", messages_error_type(error.status())}, {"message", error.what()}}}};
}

MessagesAnswer::MessagesAnswer(const CompletionRequest& request, const ServedModel& model,
                               const std::string& id)
    : request_(request), model_(model), id_("msg_" + id), answer_(request, "toolu_" + id) {}

json MessagesAnswer::usage() const {
  const int64_t cached = answer_.end().stats.cached_prompt_tokens;
  return {{"input_tokens", request_.prompt_tokens - cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached},
          {"output_tokens", answer_.num_tokens()}};
}

json MessagesAnswer::message() const {
  return {{"id", id_},
          {"type", "message"},
          {"role", "assistant"},
          {"model", model_.name},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage", usage()}};
}

/// Why it ended.
json MessagesAnswer::end_fields() const {
  const GenerationEnd& end = answer_.end();
  const bool by_text = !end.stop_text.empty();
  const char* reason = end.stats.finish == FinishReason::Context ? "model_context_window_exceeded"
                       : answer_.is_cut_off()                    ? "max_tokens"
                       : by_text                                 ? "stop_sequence"
                       : answer_.num_calls() > 0                 ? "tool_use"
                                                                 : "end_turn";
  return {{"stop_reason", reason}, {"stop_sequence", by_text ? json(end.stop_text) : json()}};
}

std::string MessagesAnswer::whole() {
  std::string content;
  for (const AnswerPart& part : answer_.parts())
    content += (content.empty() ? "" : ",") + block_of(part);
  json out = message();
  out.update(end_fields());
  out.update(own_fields());
  return with_member("content", "[" + content + "]", out);
}

/// What Anthropic's API does not know.
json MessagesAnswer::own_fields() const {
  json out{{"metrics", {{"speculative_decoding", acceptance_json(answer_.end().stats)}}}};
  if (!request_.warnings.empty()) out["medusa"] = {{"warnings", request_.warnings}};
  return out;
}

std::string MessagesAnswer::first_events() {
  json begun = message();
  begun["content"] = json::array();
  return named_event({{"type", "message_start"}, {"message", std::move(begun)}});
}

std::string MessagesAnswer::end_text() {
  if (!open_text_) return {};
  return named_event(
      {{"type", "content_block_stop"}, {"index", *std::exchange(open_text_, std::nullopt)}});
}

std::string MessagesAnswer::part_events(const std::vector<AddedPart>& parts) {
  std::string out;
  const auto say = [&out](const char* type, size_t index, const char* name, json value) {
    json data{{"type", type}, {"index", index}};
    if (name != nullptr) data[name] = std::move(value);
    out += named_event(data);
  };
  for (const AddedPart& each : parts) {
    if (each.begins) out += end_text();
    if (const auto& call = each.part.call) {
      json begun = tool_use(*call);
      begun["input"] = json::object();
      say("content_block_start", each.index, "content_block", std::move(begun));
      say("content_block_delta", each.index, "delta",
          {{"type", "input_json_delta"}, {"partial_json", call->arguments}});
      say("content_block_stop", each.index, nullptr, {});
      continue;
    }
    if (each.begins) {
      open_text_ = each.index;
      say("content_block_start", each.index, "content_block", {{"type", "text"}, {"text", ""}});
    }
    say("content_block_delta", each.index, "delta",
        {{"type", "text_delta"}, {"text", each.part.text}});
  }
  return out;
}

std::string MessagesAnswer::events(size_t, const GenerationPiece& piece) {
  return part_events(answer_.add(piece));
}

std::string MessagesAnswer::events(size_t, const GenerationEnd& end) {
  std::string out = part_events(answer_.add(end));
  return out += end_text();
}

std::string MessagesAnswer::last_events() {
  json last{{"type", "message_delta"}, {"delta", end_fields()}, {"usage", usage()}};
  last.update(own_fields());
  return named_event(last) + named_event({{"type", "message_stop"}});
}

std::string MessagesAnswer::failure_events(const ApiError& error) {
  return named_event(messages_error(error));
}

}  // namespace medusa
