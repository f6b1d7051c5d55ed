#include "server/api/responses_answer.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "base/json_text.h"

namespace medusa {
namespace {

using nlohmann::json;

json text_part(const std::string& text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", json::array()},
          {"logprobs", json::array()}};
}

/// What the answer says again of its request, or what it would mean to leave it out.
json repeated_fields(const json& body) {
  json out{{"instructions", nullptr},     {"metadata", json::object()},
           {"parallel_tool_calls", true}, {"tool_choice", "auto"},
           {"tools", json::array()},      {"text", {{"format", {{"type", "text"}}}}}};
  for (const auto& [name, value] : out.items()) {
    const auto found = body.find(name);
    if (found != body.end() && !found->is_null()) value = *found;
  }
  return out;
}

json place_in_text(size_t index, const json& item) {
  return {{"output_index", index}, {"content_index", 0}, {"item_id", item["id"]}};
}

}  // namespace

ResponsesAnswer::ResponsesAnswer(const CompletionRequest& request, const json& body,
                                 const ServedModel& model, const std::string& id)
    : request_(request),
      repeated_(repeated_fields(body)),
      model_(model),
      id_(id),
      created_(static_cast<int64_t>(std::time(nullptr))),
      answer_(request, "call_" + id) {}

json ResponsesAnswer::item(size_t index, const char* status) const {
  const AnswerPart& part = answer_.parts()[index];
  if (part.call)
    return {{"type", "function_call"},           {"id", fmt::format("fc_{}{:02x}", id_, index)},
            {"call_id", part.call->id},          {"name", part.call->name},
            {"arguments", part.call->arguments}, {"status", status}};
  return {{"type", "message"},
          {"id", fmt::format("msg_{}{:02x}", id_, index)},
          {"role", "assistant"},
          {"status", status},
          {"content", {text_part(part.text)}}};
}

json ResponsesAnswer::response(const char* status) const {
  const GenerationRequest& asked = request_.choices[0];
  json out{{"id", "resp_" + id_},
           {"object", "response"},
           {"created_at", created_},
           {"status", status},
           {"model", model_.name},
           {"error", nullptr},
           {"incomplete_details", nullptr},
           {"max_output_tokens", asked.max_tokens},
           {"temperature", asked.sampling.temperature},
           {"top_p", asked.sampling.top_p},
           {"previous_response_id", nullptr},
           {"store", false},
           {"truncation", "disabled"},
           {"output", json::array()}};
  out.update(repeated_);
  if (!request_.warnings.empty()) out["medusa"] = {{"warnings", request_.warnings}};
  if (status == std::string("in_progress")) return out;
  const bool is_whole = status == std::string("completed");
  if (status == std::string("incomplete"))
    out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  for (size_t i = 0; i < answer_.parts().size(); ++i) {  // calls come whole; the last text may not
    const bool ended = is_whole || answer_.parts()[i].call || i + 1 < answer_.parts().size();
    out["output"].push_back(item(i, ended ? "completed" : "incomplete"));
  }
  out["usage"] = {
      {"input_tokens", request_.prompt_tokens},
      {"input_tokens_details",
       {{"cached_tokens", answer_.end().stats.cached_prompt_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", answer_.num_tokens()},
      {"output_tokens_details", {{"reasoning_tokens", 0}}},
      {"total_tokens", request_.prompt_tokens + answer_.num_tokens()}};
  out["metrics"] = {{"speculative_decoding", acceptance_json(answer_.end().stats)}};
  return out;
}

/// Calls are numbered: several of them are never operands of one expression, whose order is free.
std::string ResponsesAnswer::event(const char* type, json data) {
  data["type"] = type;
  data["sequence_number"] = num_events_++;
  return named_event(data);
}

std::string ResponsesAnswer::first_events() {
  std::string out = event("response.created", {{"response", response("in_progress")}});
  return out += event("response.in_progress", {{"response", response("in_progress")}});
}

std::string ResponsesAnswer::begin_text(size_t index) {
  open_text_ = index;
  json begun = item(index, "in_progress");
  begun["content"] = json::array();
  json part = place_in_text(index, begun);
  part["part"] = text_part("");
  std::string out = event("response.output_item.added", {{"output_index", index}, {"item", begun}});
  out += event("response.content_part.added", std::move(part));
  return out;
}

std::string ResponsesAnswer::end_text(const char* status) {
  if (!open_text_) return {};
  const size_t index = *std::exchange(open_text_, std::nullopt);
  const json whole = item(index, status);
  json text = place_in_text(index, whole), part = text;
  text["text"] = answer_.parts()[index].text;
  text["logprobs"] = json::array();
  part["part"] = whole["content"][0];
  std::string out = event("response.output_text.done", std::move(text));
  out += event("response.content_part.done", std::move(part));
  out += event("response.output_item.done", {{"output_index", index}, {"item", whole}});
  return out;
}

std::string ResponsesAnswer::call_events(size_t index) {
  const json whole = item(index, "completed");
  json begun = item(index, "in_progress");
  begun["arguments"] = "";
  const json place{{"output_index", index}, {"item_id", whole["id"]}};
  json delta = place, done = place;
  delta["delta"] = done["arguments"] = whole["arguments"];
  done["name"] = whole["name"];
  std::string out = event("response.output_item.added", {{"output_index", index}, {"item", begun}});
  out += event("response.function_call_arguments.delta", std::move(delta));
  out += event("response.function_call_arguments.done", std::move(done));
  out += event("response.output_item.done", {{"output_index", index}, {"item", whole}});
  return out;
}

std::string ResponsesAnswer::part_events(const std::vector<AddedPart>& parts) {
  std::string out;
  for (const AddedPart& each : parts) {
    if (each.begins) out += end_text("completed");
    if (each.part.call) {
      out += call_events(each.index);
      continue;
    }
    if (each.begins) out += begin_text(each.index);
    json delta = place_in_text(each.index, item(each.index, "in_progress"));
    delta["delta"] = each.part.text;
    delta["logprobs"] = json::array();
    out += event("response.output_text.delta", std::move(delta));
  }
  return out;
}

std::string ResponsesAnswer::events(size_t, const GenerationPiece& piece) {
  return part_events(answer_.add(piece));
}

std::string ResponsesAnswer::events(size_t, const GenerationEnd& end) {
  std::string out = part_events(answer_.add(end));
  return out += end_text(status());
}

std::string ResponsesAnswer::last_events() {
  return event(answer_.is_cut_off() ? "response.incomplete" : "response.completed",
               {{"response", response(status())}});
}

std::string ResponsesAnswer::failure_events(const ApiError& error) {
  json failed = response("failed");
  failed["error"] = {{"code", "server_error"}, {"message", error.what()}};
  return event("response.failed", {{"response", std::move(failed)}});
}

std::string ResponsesAnswer::whole() { return json_text(response(status())); }

}  // namespace medusa
