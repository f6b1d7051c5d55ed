// Byte-level BPE from tokenizer.json, or from vocab.json with merges.txt.
#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/json_text.h"
#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/tokenizer_files.h"
#include "data/tokenizer/tokenizer_json.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

Normalization read_normalizer(const Json& normalizer, const std::string& source) {
  if (normalizer.is_null()) return Normalization::None;
  const auto type = need_json<std::string>(normalizer, "type", source);
  if (const auto form = normal_form(type)) return *form;
  if (type == "Sequence") {
    const auto list = need_json<Json>(normalizer, "normalizers", source);
    if (list.empty()) return Normalization::None;
    if (list.size() == 1) return read_normalizer(list[0], source);
  }
  refuse_tokenizer(source, fmt::format("the normalizer is '{}'", type),
                   "none, or one of NFC, NFD, NFKC, NFKD");
}

/// A regular expression that matches this text.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) == 0) out += '\\';
    out += c;
  }
  return out;
}

void read_split(const Json& step, PreTokenizer& result, const std::string& source) {
  const auto pattern = need_json<Json>(step, "pattern", source);
  auto text = find_json<std::string>(pattern, "Regex", source);
  if (!text) text = escaped(need_json<std::string>(pattern, "String", source));
  const auto behavior = need_json<std::string>(step, "behavior", source);
  if (behavior != "Isolated" && behavior != "Removed")
    refuse_tokenizer(source, fmt::format("a pre-tokenizer splits with '{}'", behavior),
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
    refuse_tokenizer(source, fmt::format("the pre-tokenizer is '{}'", type),
                     "ByteLevel, Digits, Split or a Sequence of these");
  }
}

/// Brings the texts of the tokens that are looked for in normalized text to that form.
void normalize_added(BpeParts& parts) {
  TextNormalizer normalizer;
  normalizer.add(parts.normalization);
  for (auto& token : parts.added)
    token.normalized = parts.normalization == Normalization::None
                           ? ""
                           : normalizer.apply(token.normalized, SectionStart::Text);
}

}  // namespace

BpeParts byte_level_from_json(const Json& root, const std::string& source) {
  BpeParts parts;
  parts.source = source;
  const auto model = need_json<Json>(root, "model", source);
  const auto type = find_json<std::string>(model, "type", source).value_or("BPE");
  if (type != "BPE") refuse_tokenizer(source, fmt::format("the model is '{}'", type), "BPE");
  if (find_json<bool>(model, "byte_fallback", source).value_or(false))
    refuse_tokenizer(source, "a byte-level model falls back to byte tokens", "one or the other");
  if (const auto dropout = find_json<double>(model, "dropout", source); dropout.value_or(0) != 0)
    refuse_tokenizer(source, fmt::format("the model leaves out merges by chance ({})", *dropout),
                     "a dropout of null or 0");
  parts.added = read_added_tokens(root, source);
  parts.tokens = tokens_by_id(need_json<Json>(model, "vocab", source), parts.added, source);
  for (const auto& merge : need_json<Json>(model, "merges", source))
    parts.merges.push_back(read_merge(merge, source));
  const auto pre = need_json<Json>(root, "pre_tokenizer", source);
  read_pre_tokenizer(pre, parts.pre_tokenizer, source);
  parts.pre_tokenizer_text = json_text(pre);
  parts.normalization =
      read_normalizer(find_json<Json>(root, "normalizer", source).value_or(Json()), source);
  normalize_added(parts);
  parts.whole_words_first = find_json<bool>(model, "ignore_merges", source).value_or(false);
  read_bos(root, parts.tokens, parts);
  return parts;
}

BpeParts bpe_from_vocab(const fs::path& folder, std::string_view pre, Normalization form) {
  BpeParts parts;
  parts.source = folder.string();
  const auto config = read_tokenizer_config(folder);
  parts.added = config.added;
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
  parts.normalization = form;
  normalize_added(parts);
  apply_config(config, parts.tokens, parts);
  return parts;
}

}  // namespace medusa
