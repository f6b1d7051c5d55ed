#include "data/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <set>

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

/// The token that a post-processor puts before every text.
std::optional<std::string> first_special(const Json& processor, const std::string& source) {
  const auto type = find_json<std::string>(processor, "type", source).value_or("");
  if (type == "TemplateProcessing") {
    const auto single = need_json<Json>(processor, "single", source);
    if (!single.is_array() || single.empty() || !single[0].contains("SpecialToken")) return {};
    return need_json<std::string>(single[0]["SpecialToken"], "id", source);
  }
  if (type == "Sequence")
    for (const auto& inner : need_json<Json>(processor, "processors", source))
      if (auto token = first_special(inner, source)) return token;
  return {};
}

/// The id of a token of the model's vocabulary: an object of ids, or a list of [text, score].
std::optional<int64_t> id_in_vocabulary(const Json& model, const std::string& text) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end()) return {};
  if (vocab->is_object()) {
    const auto found = vocab->find(text);
    if (found == vocab->end() || !found->is_number_integer()) return {};
    return found->get<int64_t>();
  }
  for (size_t id = 0; vocab->is_array() && id < vocab->size(); ++id)
    if ((*vocab)[id].is_array() && !(*vocab)[id].empty() && (*vocab)[id][0] == text)
      return static_cast<int64_t>(id);
  return {};
}

bool is_merged(const Json& model, const std::string& text, const std::string& source) {
  const auto merges = model.find("merges");
  return merges != model.end() && std::ranges::any_of(*merges, [&](const Json& merge) {
           const auto [first, second] = read_merge(merge, source);
           return first + second == text;
         });
}

/// Adds to the tokens of tokenizer.json what tokenizer_config.json names beside them, as
/// transformers does: added tokens of its own, and special ones of the vocabulary.
void add_configured_tokens(const TokenizerConfig& config, const std::string& source, Json& root) {
  std::set<int64_t> ids;
  std::set<std::string> texts;
  Json added = find_json<Json>(root, "added_tokens", source).value_or(Json::array());
  for (const AddedToken& each : read_added_tokens(root, source)) {
    ids.insert(each.id);
    texts.insert(each.text);
  }
  const auto add = [&](int64_t id, const AddedToken& token) {
    if (ids.insert(id).second && texts.insert(token.text).second)
      added.push_back({{"id", id},
                       {"content", token.text},
                       {"special", token.special},
                       {"lstrip", token.lstrip},
                       {"rstrip", token.rstrip},
                       {"single_word", token.single_word},
                       {"normalized", !token.normalized.empty()}});
  };
  const auto found = root.find("model");  // not copied: it is most of the file
  const Json& model = found == root.end() ? root : *found;
  for (const AddedToken& token : config.added) {
    if (texts.contains(token.text)) continue;
    const auto known = id_in_vocabulary(model, token.text);
    if (!known || known == token.id) add(token.id, token);
  }
  for (const std::string& text : config.special) {
    if (text.empty() || texts.contains(text)) continue;
    if (const auto id = id_in_vocabulary(model, text)) {
      AddedToken token;
      token.text = text;
      token.special = !is_merged(model, text, source);  // what merges make is text, too
      add(*id, token);
    }
  }
  root["added_tokens"] = std::move(added);
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

std::optional<std::string> first_token(const Json& root, const std::string& source) {
  return first_special(find_json<Json>(root, "post_processor", source).value_or(Json()), source);
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
  Json root = read_json_file(file);
  const auto config = read_tokenizer_config(file.parent_path());
  add_configured_tokens(config, source, root);
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
