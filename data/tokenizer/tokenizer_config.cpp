#include "data/tokenizer/tokenizer_config.h"

#include <charconv>

#include "base/file.h"
#include "data/tokenizer/tokenizer_json.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// The text of a token: a string, or an object with its content.
std::optional<std::string> token_text(const Json& config, const char* key,
                                      const std::string& source) {
  const auto value = find_json<Json>(config, key, source);
  if (!value) return std::nullopt;
  if (value->is_object()) return need_json<std::string>(*value, "content", source);
  return need_json<std::string>(config, key, source);
}

std::string read_chat_template(const Json& config, const std::string& source) {
  const auto value = find_json<Json>(config, "chat_template", source);
  if (!value) return "";
  if (!value->is_array()) return need_json<std::string>(config, "chat_template", source);
  for (const auto& entry : *value)  // several, by name
    if (find_json<std::string>(entry, "name", source) == "default")
      return need_json<std::string>(entry, "template", source);
  return "";
}

int64_t read_id(const std::string& text, const std::string& source) {
  int64_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size())
    refuse_tokenizer(source, fmt::format("an added token has the id '{}'", text), "a number");
  return id;
}

/// By id: as objects in tokenizer_config.json, or in the older added_tokens.json as ids by text.
std::vector<AddedToken> read_added(const fs::path& folder, const Json& config,
                                   const std::string& source) {
  std::vector<AddedToken> added;
  if (const auto decoder = find_json<Json>(config, "added_tokens_decoder", source)) {
    for (const auto& [id, entry] : decoder->items())
      added.push_back(read_added_token(entry, read_id(id, source), source));
  } else if (const fs::path path = folder / "added_tokens.json"; fs::exists(path)) {
    const Json list = read_json_file(path);
    for (const auto& [text, id] : list.items())
      added.push_back(read_added_token({{"content", text}, {"special", true}},
                                       need_json<int64_t>(list, text.c_str(), path.string()),
                                       path.string()));
  }
  std::sort(added.begin(), added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

}  // namespace

TokenizerConfig read_tokenizer_config(const fs::path& folder) {
  TokenizerConfig result;
  const fs::path path = folder / "tokenizer_config.json";
  result.source = path.string();
  const Json config = fs::exists(path) ? read_json_file(path) : Json::object();
  result.bos = token_text(config, "bos_token", result.source);
  result.eos = token_text(config, "eos_token", result.source);
  result.adds_bos = find_json<bool>(config, "add_bos_token", result.source);
  result.family = find_json<std::string>(config, "tokenizer_class", result.source);
  result.chat_template = read_chat_template(config, result.source);
  result.added = read_added(folder, config, result.source);
  for (const auto& each : {result.bos, result.eos, token_text(config, "pad_token", result.source)})
    if (each) result.special.push_back(*each);
  const auto more = find_json<Json>(config, "additional_special_tokens", result.source);
  for (const Json& each : more && more->is_array() ? *more : Json::array()) {
    const Json one{{"token", each}};
    if (const auto text = token_text(one, "token", result.source)) result.special.push_back(*text);
  }
  if (const fs::path jinja = folder / "chat_template.jinja"; fs::exists(jinja))
    result.chat_template = read_file(jinja);
  return result;
}

std::optional<TokenId> find_token(const std::vector<std::string>& tokens, const std::string& text) {
  const auto found = std::find(tokens.begin(), tokens.end(), text);
  if (found == tokens.end()) return std::nullopt;
  return static_cast<TokenId>(found - tokens.begin());
}

TokenId configured_token(const TokenizerConfig& config, const char* key, const std::string& text,
                         const std::vector<std::string>& tokens) {
  const auto id = find_token(tokens, text);
  if (!id)
    refuse_tokenizer(config.source, fmt::format("'{}' is '{}'", key, text),
                     "a token of the vocabulary");
  return *id;
}

}  // namespace medusa
