// Tokenizers from the files of a Hugging Face folder.
#include <algorithm>
#include <cstdlib>

#include "data/json_value.h"
#include "data/tokenizer_files.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const std::string& source, const std::string& found,
                         const std::string& expected) {
  throw UserError(fmt::format(
      "{}: {}, expected {}; use a model with a byte-level BPE tokenizer, or its GGUF file", source,
      found, expected));
}

/// The tokens of a vocab object {text: id} and of added tokens, by id; every id below V once.
std::vector<std::string> tokens_by_id(const Json& vocab, const std::vector<AddedToken>& added,
                                      const std::string& source) {
  if (!vocab.is_object()) refuse(source, "the vocabulary is no object", "tokens and their ids");
  std::vector<std::pair<int64_t, std::string>> pairs;
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_integer())
      refuse(source, fmt::format("the id of '{}' is {}", token, id.type_name()), "an integer");
    pairs.emplace_back(id.get<int64_t>(), token);
  }
  for (const auto& token : added)  // most vocabularies list them too
    if (!vocab.contains(token.text)) pairs.emplace_back(token.id, token.text);
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::string> tokens;
  for (auto& [id, token] : pairs) {
    if (id != static_cast<int64_t>(tokens.size()))
      refuse(source, fmt::format("'{}' has the id {}", token, id),
             fmt::format("the id {}: every id below {} once", tokens.size(), pairs.size()));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedToken read_added_token(const Json& entry, int64_t id, const std::string& source) {
  if (id < 0 || id > (1 << 30))
    refuse(source, fmt::format("an added token has the id {}", id), "a small id");
  AddedToken token;
  token.id = static_cast<TokenId>(id);
  token.text = need_json<std::string>(entry, "content", source);
  token.special = find_json<bool>(entry, "special", source).value_or(false);
  token.lstrip = find_json<bool>(entry, "lstrip", source).value_or(false);
  token.rstrip = find_json<bool>(entry, "rstrip", source).value_or(false);
  token.single_word = find_json<bool>(entry, "single_word", source).value_or(false);
  return token;
}

Normalization read_normalizer(const Json& normalizer, const std::string& source) {
  if (normalizer.is_null()) return Normalization::None;
  const auto type = need_json<std::string>(normalizer, "type", source);
  if (type == "NFC") return Normalization::Nfc;
  if (type == "NFD") return Normalization::Nfd;
  if (type == "NFKC") return Normalization::Nfkc;
  if (type == "NFKD") return Normalization::Nfkd;
  if (type == "Sequence") {
    const auto list = need_json<Json>(normalizer, "normalizers", source);
    if (list.empty()) return Normalization::None;
    if (list.size() == 1) return read_normalizer(list[0], source);
  }
  refuse(source, fmt::format("the normalizer is '{}'", type),
         "none, or one of NFC, NFD, NFKC, NFKD");
}

void read_split(const Json& step, PreTokenizer& result, const std::string& source) {
  const auto pattern = need_json<Json>(step, "pattern", source);
  auto text = find_json<std::string>(pattern, "Regex", source);
  if (!text) text = "\\Q" + need_json<std::string>(pattern, "String", source) + "\\E";
  const auto behavior = need_json<std::string>(step, "behavior", source);
  if (behavior != "Isolated" && behavior != "Removed")
    refuse(source, fmt::format("a pre-tokenizer splits with '{}'", behavior),
           "Isolated or Removed");
  // Inverted, the gaps are what counts as a match.
  const bool drop = behavior == "Removed";
  const bool invert = find_json<bool>(step, "invert", source).value_or(false);
  result.add_split({Regex(*text, source), drop && !invert, drop && invert});
}

void read_pre_tokenizer(const Json& step, PreTokenizer& result, const std::string& source,
                        int depth = 0) {
  const auto type = need_json<std::string>(step, "type", source);
  if (type == "Sequence" && depth == 0) {
    for (const auto& inner : need_json<Json>(step, "pretokenizers", source))
      read_pre_tokenizer(inner, result, source, depth + 1);
  } else if (type == "ByteLevel") {
    result.add_byte_level(find_json<bool>(step, "use_regex", source).value_or(true),
                          find_json<bool>(step, "add_prefix_space", source).value_or(true), source);
  } else if (type == "Digits") {
    const bool each = find_json<bool>(step, "individual_digits", source).value_or(false);
    result.add_split({Regex(each ? R"(\p{N})" : R"(\p{N}+)", source)});
  } else if (type == "Split") {
    read_split(step, result, source);
  } else {
    refuse(source, fmt::format("the pre-tokenizer is '{}'", type),
           "ByteLevel, Digits, Split or a Sequence of these");
  }
}

/// True if the file's post-processor puts a special token before every text.
bool begins_with_special(const Json& processor, const std::string& source) {
  const auto type = find_json<std::string>(processor, "type", source).value_or("");
  if (type == "TemplateProcessing") {
    const auto single = need_json<Json>(processor, "single", source);
    return single.is_array() && !single.empty() && single[0].contains("SpecialToken");
  }
  if (type == "Sequence")
    for (const auto& inner : need_json<Json>(processor, "processors", source))
      if (begins_with_special(inner, source)) return true;
  return false;
}

std::pair<std::string, std::string> read_merge(const Json& merge, const std::string& source) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  if (merge.is_string()) {
    const auto text = merge.get<std::string>();
    if (const size_t space = text.find(' ', 1); space != std::string::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  refuse(source, "a merge is neither two words nor a list of two", "'a b' or [\"a\", \"b\"]");
}

/// The text of a token in tokenizer_config.json: a string, or an object with its content.
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

/// What stands beside the vocabulary.
void read_config(const fs::path& folder, BpeParts& parts) {
  const fs::path path = folder / "tokenizer_config.json";
  if (fs::exists(path)) {
    const std::string source = path.string();
    const Json config = read_json_file(path);
    const auto id_of = [&](const char* key) -> std::optional<TokenId> {
      const auto text = token_text(config, key, source);
      if (!text) return std::nullopt;
      const auto found = std::find(parts.tokens.begin(), parts.tokens.end(), *text);
      if (found == parts.tokens.end())
        refuse(source, fmt::format("'{}' is '{}'", key, *text), "a token of the vocabulary");
      return static_cast<TokenId>(found - parts.tokens.begin());
    };
    parts.bos = id_of("bos_token");
    parts.eos = id_of("eos_token");
    parts.adds_bos =
        parts.bos && find_json<bool>(config, "add_bos_token", source).value_or(parts.adds_bos);
    parts.chat_template = read_chat_template(config, source);
  }
  parts.adds_bos = parts.adds_bos && parts.bos;
  if (const fs::path jinja = folder / "chat_template.jinja"; fs::exists(jinja))
    parts.chat_template = read_file(jinja);
}

}  // namespace

BpeParts bpe_from_json(const fs::path& file) {
  BpeParts parts;
  parts.source = file.string();
  const Json root = read_json_file(file);
  const auto model = need_json<Json>(root, "model", parts.source);
  const auto type = find_json<std::string>(model, "type", parts.source).value_or("BPE");
  if (type != "BPE") refuse(parts.source, fmt::format("the model is '{}'", type), "BPE");
  if (find_json<bool>(model, "byte_fallback", parts.source).value_or(false))
    refuse(parts.source, "the model falls back to byte tokens", "a byte-level model");
  for (const auto& entry :
       find_json<Json>(root, "added_tokens", parts.source).value_or(Json::array()))
    parts.added.push_back(
        read_added_token(entry, need_json<int64_t>(entry, "id", parts.source), parts.source));
  parts.tokens =
      tokens_by_id(need_json<Json>(model, "vocab", parts.source), parts.added, parts.source);
  for (const auto& merge : need_json<Json>(model, "merges", parts.source))
    parts.merges.push_back(read_merge(merge, parts.source));
  const auto pre = need_json<Json>(root, "pre_tokenizer", parts.source);
  read_pre_tokenizer(pre, parts.pre_tokenizer, parts.source);
  parts.pre_tokenizer_text = pre.dump();
  parts.normalization = read_normalizer(
      find_json<Json>(root, "normalizer", parts.source).value_or(Json()), parts.source);
  parts.whole_words_first = find_json<bool>(model, "ignore_merges", parts.source).value_or(false);
  parts.adds_bos = begins_with_special(
      find_json<Json>(root, "post_processor", parts.source).value_or(Json()), parts.source);
  read_config(file.parent_path(), parts);
  return parts;
}

BpeParts bpe_from_vocab(const fs::path& folder, std::string_view pre) {
  BpeParts parts;
  parts.source = folder.string();
  if (const fs::path path = folder / "tokenizer_config.json"; fs::exists(path)) {
    const Json config = read_json_file(path);
    const Json added =
        find_json<Json>(config, "added_tokens_decoder", path.string()).value_or(Json::object());
    for (const auto& [id, entry] : added.items())
      parts.added.push_back(read_added_token(entry, std::atoll(id.c_str()), path.string()));
  }
  const fs::path vocab = folder / "vocab.json";
  parts.tokens = tokens_by_id(read_json_file(vocab), parts.added, vocab.string());
  const std::string merges = read_file(folder / "merges.txt");
  for (size_t at = 0; at < merges.size();) {
    const size_t end = std::min(merges.find('\n', at), merges.size());
    std::string line = merges.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with("#version:")) continue;
    parts.merges.push_back(read_merge(line, (folder / "merges.txt").string()));
  }
  parts.pre_tokenizer = PreTokenizer::named(pre, parts.source);
  parts.pre_tokenizer_text = pre;
  read_config(folder, parts);
  return parts;
}

}  // namespace medusa
