#include "data/chat/chat_template.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "data/chat/jinja/unicode.h"
#include "data/chat/model_chat_template.h"

namespace medusa {
namespace {

constexpr const char* kTemplateNames = "chatml, llama-2, llama-3, zephyr, vicuna, mistral, plain";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Undoes the escapes of a Jinja string literal; nullopt if the literal ends inside text.
std::optional<std::string> literal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'' || text[i] == '"' || text[i] == '{') return std::nullopt;
    if (text[i] == '\\' && i + 1 < text.size()) {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i];
    } else {
      out += text[i];
    }
  }
  return out;
}

/// The system message that a chatml source writes when a conversation brings none.
std::string chatml_default_system(std::string_view jinja) {
  constexpr std::string_view kOpen = "<|im_start|>system";
  for (size_t at = jinja.find(kOpen); at != std::string_view::npos;
       at = jinja.find(kOpen, at + 1)) {
    const size_t begin = at + kOpen.size();
    const size_t end = jinja.find("<|im_end|>", begin);
    if (end == std::string_view::npos) break;
    const auto text = literal(jinja.substr(begin, end - begin));
    if (text && text->size() > 1 && (*text)[0] == '\n') return text->substr(1);
  }
  return "";
}

/// Sources of models trained for tool calls, which write about tools in every conversation:
/// rendering them without would be another prompt than the one they were trained with.
bool always_writes_tools(std::string_view jinja) {
  for (const std::string_view sign :
       {">>>", "functools", "<function=", "You are a function calling AI"})
    if (contains(jinja, sign)) return true;
  return false;
}

/// Whether there is more in it than texts.
bool calls_tools(const std::vector<ChatMessage>& messages) {
  for (const ChatMessage& each : messages)
    if (each.role == "tool" || !each.tool_calls.empty()) return true;
  return false;
}

}  // namespace

ChatTemplate ChatTemplate::by_name(std::string_view name) {
  ChatTemplate t;
  t.name_ = name;
  if (name == "chatml") {
    t.markers_ = {"<|im_start|>", "<|im_end|>"};
    t.system_ = {"<|im_start|>system\n", "<|im_end|>\n"};
    t.user_ = {"<|im_start|>user\n", "<|im_end|>\n"};
    t.assistant_ = {"<|im_start|>assistant\n", "<|im_end|>\n"};
    t.answer_ = t.assistant_.before;
    t.end_of_user_turn_ = t.end_of_turn_ = "<|im_end|>";
    t.later_system_ = true;
  } else if (name == "llama-3") {
    t.markers_ = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
    t.start_ = "<|begin_of_text|>";
    t.system_ = {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"};
    t.user_ = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"};
    t.assistant_ = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"};
    t.answer_ = t.assistant_.before;
    t.end_of_user_turn_ = t.end_of_turn_ = "<|eot_id|>";
    t.later_system_ = true;
    t.trims_ = true;
  } else if (name == "llama-2") {
    t.markers_ = {"<s>", "</s>"};
    t.system_ = {"<<SYS>>\n", "\n<</SYS>>\n\n"};
    t.user_ = {"<s>[INST] ", " [/INST]"};
    t.assistant_ = {" ", " </s>"};
    t.system_place_ = SystemPlace::FirstUserTurn;
    t.end_of_user_turn_ = "[/INST]";
    t.end_of_turn_ = "</s>";
    t.trims_ = true;
  } else if (name == "mistral") {
    t.markers_ = {"<s>", "</s>", "[INST]", "[/INST]"};
    t.start_ = "<s>";
    t.system_ = {"", "\n\n"};
    t.user_ = {"[INST] ", " [/INST]"};
    t.assistant_ = {" ", "</s>"};
    t.system_place_ = SystemPlace::LastUserTurn;
    t.end_of_user_turn_ = "[/INST]";
    t.end_of_turn_ = "</s>";
  } else if (name == "zephyr") {
    t.markers_ = {"</s>", "<|system|>", "<|user|>", "<|assistant|>"};
    t.system_ = {"<|system|>\n", "</s>\n"};
    t.user_ = {"<|user|>\n", "</s>\n"};
    t.assistant_ = {"<|assistant|>\n", "</s>\n"};
    t.answer_ = t.assistant_.before;
    t.end_of_user_turn_ = t.end_of_turn_ = "</s>";
    t.later_system_ = true;
  } else if (name == "vicuna") {
    t.markers_ = {"</s>"};
    t.system_ = {"", " "};
    t.user_ = {"USER: ", " "};
    t.assistant_ = {"ASSISTANT: ", "</s>"};
    t.answer_ = "ASSISTANT:";
    t.default_system_ =
        "A chat between a curious user and an artificial intelligence assistant. The assistant "
        "gives helpful, detailed, and polite answers to the user's questions.";
    t.end_of_user_turn_ = "ASSISTANT:";
    t.end_of_turn_ = "</s>";
  } else if (name == "plain") {
    t.separator_ = "\n\n";
  } else {
    throw UserError(
        fmt::format("backbone.chat_template is '{}', expected one of {}; choose the one the model "
                    "was trained with, or plain",
                    name, kTemplateNames));
  }
  return t;
}

std::optional<ChatTemplate> ChatTemplate::recognize(std::string_view jinja) {
  const bool ours = !always_writes_tools(jinja);
  if (ours && contains(jinja, "<|im_start|>")) {
    auto t = by_name("chatml");
    t.default_system_ = chatml_default_system(jinja);
    return t;
  }
  if (ours && contains(jinja, "<|start_header_id|>")) {
    auto t = by_name("llama-3");
    if (contains(jinja, "Cutting Knowledge Date: December 2023"))
      t.system_preamble_ = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
    return t;
  }
  if (contains(jinja, "<<SYS>>")) return by_name("llama-2");
  if (contains(jinja, "[INST]")) {
    auto t = by_name("mistral");
    // Later vocabularies have tokens for the brackets and no spaces beside them.
    if (contains(jinja, "\"[INST]\"") || contains(jinja, "'[INST]'")) t.user_.before = "[INST]";
    if (contains(jinja, "\"[/INST]\"") || contains(jinja, "'[/INST]'")) t.user_.after = "[/INST]";
    if (t.user_.before == "[INST]") t.assistant_.before = "";
    return t;
  }
  if (contains(jinja, "<|user|>") && contains(jinja, "<|assistant|>") &&
      !contains(jinja, "<|end|>"))
    return by_name("zephyr");
  if (contains(jinja, "USER: ") && contains(jinja, "ASSISTANT:")) return by_name("vicuna");
  return std::nullopt;
}

/// Whether the source gives the same texts, and refuses none but system messages.
bool ChatTemplate::writes_like(const ModelChatTemplate& source) const {
  const ChatMessage system{"system", "Be brief."}, spaced{"system", " Be\n"};
  const ChatMessage user{"user", "What is 東京?"}, empty{"user", ""}, padded{"user", "  Hi \n"};
  const ChatMessage answer{"assistant", "A city."}, padded_answer{"assistant", "\n A city. "};
  const ChatMessage thought{"assistant", "<think>\nHm.\n</think>\n\nA city."};
  const std::vector<std::vector<ChatMessage>> conversations = {
      {user},
      {system, user},
      {spaced, user},
      {user, answer, user},
      {system, user, answer, user, answer, user},
      {empty},
      {padded},
      {user, padded_answer, user},
      {user, thought, user},
      {user, user},
      {user, answer, answer, user}};
  for (const auto& messages : conversations) {
    std::string text;
    try {
      text = source.render(messages, true);
    } catch (const UserError&) {
      // Many sources refuse a system message, which ours then has a place for.
      if (messages[0].role == "system") continue;
      return false;
    }
    if (render(messages, true) != text) return false;
  }
  return true;
}

/// Whether the source writes a system message that is not the first as a turn, too. Some leave it
/// out, and some refuse it: then there is no place for it.
bool ChatTemplate::writes_later_system_like(const ModelChatTemplate& source) const {
  const ChatMessage system{"system", "Be brief."}, user{"user", "Hi"}, answer{"assistant", "Yes."};
  const std::vector<std::vector<ChatMessage>> conversations = {
      {system, system, user}, {user, answer, system, user}, {system, user, answer, system, user}};
  for (const auto& messages : conversations) {
    try {
      if (source.render(messages, true) != render(messages, true)) return false;
    } catch (const UserError&) {
      return false;
    }
  }
  return true;
}

ChatTemplate ChatTemplate::of_model(const Tokenizer& tokenizer) {
  const std::string& jinja = tokenizer.chat_template();
  if (jinja.empty())
    throw UserError(
        fmt::format("the model's files: there is no chat template in them, expected one; set "
                    "backbone.chat_template to one of {}",
                    kTemplateNames));
  return of_source(jinja, tokenizer);
}

ChatTemplate ChatTemplate::of_source(const std::string& jinja, const Tokenizer& tokenizer) {
  auto source = std::make_shared<const ModelChatTemplate>(jinja, tokenizer);
  const auto with_tools = source->takes_tools(tokenizer) ? source : nullptr;
  if (auto built_in = recognize(jinja); built_in && built_in->writes_like(*source)) {
    built_in->tools_source_ = with_tools;
    built_in->later_system_ =
        built_in->later_system_ && built_in->writes_later_system_like(*source);
    return *std::move(built_in);
  }
  const auto ends = source->find_ends(tokenizer);
  ChatTemplate t;
  t.name_ = "the model's own";
  t.end_of_user_turn_ = ends.of_user_turn;
  t.end_of_turn_ = ends.of_turn;
  t.source_ = std::move(source);
  t.tools_source_ = with_tools;
  return t;
}

std::vector<ChatTemplate::Part> ChatTemplate::parts(const std::vector<ChatMessage>& messages,
                                                    bool add_generation_prompt,
                                                    bool open_user_turn) const {
  std::vector<Part> out;
  const auto add = [&](const std::string& text, bool from_template) {
    if (!text.empty()) out.push_back({text, from_template});
  };
  const auto content = [&](const std::string& text) {
    return trims_ ? std::string(jinja::strip(text, std::nullopt, jinja::Side::Both)) : text;
  };

  const bool has_system = !messages.empty() && messages[0].role == "system";
  const std::string system = has_system ? content(messages[0].content) : default_system_;
  const bool own_turn = system_place_ == SystemPlace::OwnTurn;
  add(start_, true);
  bool first = true;
  if (own_turn && (has_system || !system.empty() || !system_preamble_.empty())) {
    add(system_.before + system_preamble_, true);
    add(system, false);
    add(system_.after, true);
    first = false;
  }
  size_t last_user = 0;
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].role == "user") last_user = i;
  const size_t first_message = has_system ? 1 : 0;
  const size_t with_system =
      system_place_ == SystemPlace::FirstUserTurn ? first_message : last_user;

  for (size_t i = first_message; i < messages.size(); ++i) {
    const auto& message = messages[i];
    const bool is_user = message.role == "user";
    const bool is_system = message.role == "system" && later_system_;
    if (!is_user && !is_system && message.role != "assistant")
      throw UserError(fmt::format(
          "the chat template {} has no place for message {} of role {}, expected the roles user "
          "and assistant, and system{}; change the conversation",
          name_, i + 1, message.role, later_system_ ? "" : " in the first message alone"));
    const TurnFrame& frame = is_user ? user_ : is_system ? system_ : assistant_;
    if (!first) add(separator_, true);
    first = false;
    add(frame.before, true);
    if (is_user && !own_turn && i == with_system && !system.empty()) {
      add(system_.before, true);
      add(system, false);
      add(system_.after, true);
    }
    add(content(message.content), false);
    add(frame.after, true);
  }
  if (add_generation_prompt) add(answer_, true);
  if (open_user_turn) add(user_.before, true);
  return out;
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                 bool add_generation_prompt) const {
  if (source_) return source_->render(messages, add_generation_prompt);
  std::string text;
  for (const auto& part : parts(messages, add_generation_prompt, false)) text += part.text;
  return text;
}

std::string ChatTemplate::user_prefix() const {
  if (source_) return source_->user_prefix();
  std::string text;
  for (const auto& part : parts({}, false, true)) text += part.text;
  return text;
}

std::vector<TokenId> ChatTemplate::encode(const Tokenizer& tokenizer,
                                          const std::vector<ChatMessage>& messages,
                                          const std::string& tools) const {
  if (!tools.empty() || calls_tools(messages)) {
    MEDUSA_ASSERT(takes_tools());
    return tools_source_->encode(tokenizer, messages, tools);
  }
  if (source_) return source_->encode(tokenizer, messages);
  return encode_parts(tokenizer, parts(messages, true, false));
}

std::vector<TokenId> ChatTemplate::encode_open_user_turn(const Tokenizer& tokenizer,
                                                         std::string_view first_words) const {
  if (source_) return source_->encode_open_user_turn(tokenizer, first_words);
  auto all = parts({}, false, true);
  all.push_back({std::string(first_words), false});
  return encode_parts(tokenizer, all);
}

std::vector<TokenId> ChatTemplate::encode_parts(const Tokenizer& tokenizer,
                                                const std::vector<Part>& parts) const {
  std::vector<TokenId> ids;
  std::string ordinary;  // text since the last marker: encoded as one, as the model has seen it
  const auto flush = [&] {
    if (ordinary.empty()) return;
    const auto more = tokenizer.encode(ordinary, false);
    ids.insert(ids.end(), more.begin(), more.end());
    ordinary.clear();
  };
  for (const auto& part : parts) {
    if (!part.from_template) {
      ordinary += part.text;
      continue;
    }
    for (size_t at = 0; at < part.text.size();) {
      const auto rest = std::string_view(part.text).substr(at);
      std::optional<TokenId> special;
      for (const auto& marker : markers_) {
        if (!rest.starts_with(marker)) continue;
        const auto id = tokenizer.find(marker);
        if (!id || !tokenizer.is_special(*id)) continue;
        special = id;
        at += marker.size();
        break;
      }
      if (special) {
        flush();
        ids.push_back(*special);
      } else {
        ordinary += part.text[at++];
      }
    }
  }
  flush();
  if (tokenizer.adds_bos() && (ids.empty() || ids[0] != *tokenizer.bos()))
    ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

}  // namespace medusa
