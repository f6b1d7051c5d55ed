#include "data/tokenizer/tokenizer_json.h"

#include <algorithm>

#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/tokenizer_files.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// True if a pre-tokenizer is, or has among its steps, one of this type.
bool has_step(const Json& step, const char* type, const std::string& source) {
  if (find_json<std::string>(step, "type", source) == type) return true;
  if (!step.is_object() || !step.contains("pretokenizers")) return false;
  const auto& inner = step["pretokenizers"];
  return std::any_of(inner.begin(), inner.end(),
                     [&](const Json& each) { return has_step(each, type, source); });
}

bool processor_begins_with_special(const Json& processor, const std::string& source) {
  const auto type = find_json<std::string>(processor, "type", source).value_or("");
  if (type == "TemplateProcessing") {
    const auto single = need_json<Json>(processor, "single", source);
    return single.is_array() && !single.empty() && single[0].contains("SpecialToken");
  }
  if (type == "Sequence")
    for (const auto& inner : need_json<Json>(processor, "processors", source))
      if (processor_begins_with_special(inner, source)) return true;
  return false;
}

}  // namespace

void refuse_tokenizer(const std::string& source, const std::string& found,
                      const std::string& expected) {
  throw UserError(fmt::format(
      "{}: {}, expected {}; use a model with a byte-level BPE or SentencePiece tokenizer, or its "
      "GGUF file",
      source, found, expected));
}

std::vector<std::string> tokens_by_id(const Json& vocab, const std::vector<AddedToken>& added,
                                      const std::string& source) {
  if (!vocab.is_object())
    refuse_tokenizer(source, "the vocabulary is no object", "tokens and their ids");
  std::vector<std::pair<int64_t, std::string>> pairs;
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_integer())
      refuse_tokenizer(source, fmt::format("the id of '{}' is {}", token, id.type_name()),
                       "an integer");
    pairs.emplace_back(id.get<int64_t>(), token);
  }
  for (const auto& token : added)  // most vocabularies list them too
    if (!vocab.contains(token.text)) pairs.emplace_back(token.id, token.text);
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::string> tokens;
  for (auto& [id, token] : pairs) {
    if (id != static_cast<int64_t>(tokens.size()))
      refuse_tokenizer(
          source, fmt::format("'{}' has the id {}", token, id),
          fmt::format("the id {}: every id below {} once", tokens.size(), pairs.size()));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedToken read_added_token(const Json& entry, int64_t id, const std::string& source) {
  if (id < 0 || id > (1 << 30))
    refuse_tokenizer(source, fmt::format("an added token has the id {}", id), "a small id");
  AddedToken token;
  token.id = static_cast<TokenId>(id);
  token.text = need_json<std::string>(entry, "content", source);
  token.special = find_json<bool>(entry, "special", source).value_or(false);
  token.lstrip = find_json<bool>(entry, "lstrip", source).value_or(false);
  token.rstrip = find_json<bool>(entry, "rstrip", source).value_or(false);
  token.single_word = find_json<bool>(entry, "single_word", source).value_or(false);
  if (find_json<bool>(entry, "normalized", source).value_or(false)) token.normalized = token.text;
  return token;
}

std::vector<AddedToken> read_added_tokens(const Json& root, const std::string& source) {
  std::vector<AddedToken> added;
  for (const auto& entry : find_json<Json>(root, "added_tokens", source).value_or(Json::array()))
    added.push_back(read_added_token(entry, need_json<int64_t>(entry, "id", source), source));
  return added;
}

bool begins_with_special(const Json& root, const std::string& source) {
  return processor_begins_with_special(
      find_json<Json>(root, "post_processor", source).value_or(Json()), source);
}

std::pair<std::string, std::string> read_merge(const Json& merge, const std::string& source) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  if (merge.is_string()) {
    const auto text = merge.get<std::string>();
    if (const size_t space = text.find(' ', 1); space != std::string::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  refuse_tokenizer(source, "a merge is neither two words nor a list of two",
                   "'a b' or [\"a\", \"b\"]");
}

std::optional<Normalization> normal_form(const std::string& type) {
  if (type == "NFC") return Normalization::Nfc;
  if (type == "NFD") return Normalization::Nfd;
  if (type == "NFKC") return Normalization::Nfkc;
  if (type == "NFKD") return Normalization::Nfkd;
  return std::nullopt;
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const fs::path& file) {
  const std::string source = file.string();
  const Json root = read_json_file(file);
  const auto config = read_tokenizer_config(file.parent_path());
  const auto model = find_json<Json>(root, "model", source).value_or(Json());
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto mark = find_json<std::string>(model, key, source); mark && !mark->empty())
      refuse_tokenizer(source, fmt::format("the model's '{}' is '{}'", key, *mark), "none");
  const auto pre = find_json<Json>(root, "pre_tokenizer", source).value_or(Json());
  if (has_step(pre, "ByteLevel", source)) {
    auto parts = byte_level_from_json(root, source);
    apply_config(config, parts.tokens, parts);
    return std::make_unique<BpeTokenizer>(std::move(parts));
  }
  auto parts = sentencepiece_from_json(root, source);
  apply_config(config, parts.pieces, parts);
  return std::make_unique<SentencePieceTokenizer>(std::move(parts));
}

}  // namespace medusa
