#include "data/tokenizer/tokenizer_export.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/formats/gguf_file.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "data/tokenizer/tokenizer_files.h"

namespace medusa {
namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;
namespace {

template <typename T>
void append(const T& value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string_view text, std::string& out) {
  append(static_cast<uint64_t>(text.size()), out);
  out += text;
}

/// A GGUF file of some keys of another one, their values byte for byte.
std::string gguf_of(const std::vector<const GgufEntry*>& entries, uint32_t version) {
  std::string out = "GGUF";
  append(version, out);
  append(uint64_t{0}, out);  // tensors
  append(static_cast<uint64_t>(entries.size()), out);
  for (const GgufEntry* entry : entries) {
    append_text(entry->key, out);
    if (entry->is_array) {
      append(GgufValueType::Array, out);
      append(entry->type, out);
      append(static_cast<uint64_t>(entry->count), out);
    } else {
      append(entry->type, out);
    }
    out.append(reinterpret_cast<const char*>(entry->raw.data()), entry->raw.size());
  }
  return out;
}

/// Cuts where the patterns match and writes what is left in the byte alphabet.
OrderedJson pre_tokenizer_json(const BpeParts& parts) {
  OrderedJson steps = OrderedJson::array();
  for (const std::string& pattern :
       PreTokenizer::patterns_of(parts.pre_tokenizer_text, parts.source))
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

/// Puts bos before every text, where the tokenizer does.
OrderedJson post_processor_json(const BpeParts& parts) {
  if (!parts.adds_bos || !parts.bos) return nullptr;
  const std::string& text = parts.tokens[static_cast<size_t>(*parts.bos)];
  const OrderedJson bos = {{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
  const auto sequence = [](const char* id, int type) {
    return OrderedJson{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", OrderedJson::array({bos, sequence("A", 0)})},
          {"pair", OrderedJson::array({bos, sequence("A", 0), bos, sequence("B", 1)})},
          {"special_tokens",
           {{text,
             {{"id", text},
              {"ids", OrderedJson::array({*parts.bos})},
              {"tokens", OrderedJson::array({text})}}}}}};
}

OrderedJson tokenizer_json(const BpeParts& parts) {
  OrderedJson vocab = OrderedJson::object(), merges = OrderedJson::array(),
              added = OrderedJson::array();
  for (size_t id = 0; id < parts.tokens.size(); ++id) vocab[parts.tokens[id]] = id;
  for (const auto& [left, right] : parts.merges)
    merges.push_back(fmt::format("{} {}", left, right));
  for (const AddedToken& token : parts.added)
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", false},
                     {"special", token.special}});
  const OrderedJson byte_level = {{"type", "ByteLevel"},
                                  {"add_prefix_space", true},
                                  {"trim_offsets", true},
                                  {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", nullptr},
          {"pre_tokenizer", pre_tokenizer_json(parts)},
          {"post_processor", post_processor_json(parts)},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", parts.whole_words_first},
            {"vocab", std::move(vocab)},
            {"merges", std::move(merges)}}}};
}

OrderedJson config_json(const BpeParts& parts) {
  OrderedJson out{{"tokenizer_class", "PreTrainedTokenizerFast"},
                  {"clean_up_tokenization_spaces", false},
                  {"add_bos_token", parts.adds_bos}};
  if (parts.bos) out["bos_token"] = parts.tokens[static_cast<size_t>(*parts.bos)];
  if (parts.eos) out["eos_token"] = parts.tokens[static_cast<size_t>(*parts.eos)];
  if (!parts.chat_template.empty()) out["chat_template"] = parts.chat_template;
  return out;
}

/// tokenizer.json can hold nothing else; U+FFFD instead would make two tokens one.
void expect_utf8(const BpeParts& parts) {
  const auto refuse = [&](const std::string& what) {
    throw UserError(fmt::format(
        "{}: {} is not UTF-8, expected that of everything that tokenizer.json holds; export with "
        "the tokenizer of the original model",
        parts.source, what));
  };
  for (size_t id = 0; id < parts.tokens.size(); ++id)
    if (!is_valid_utf8(parts.tokens[id])) refuse(fmt::format("token {}", id));
  for (const auto& [left, right] : parts.merges)
    if (!is_valid_utf8(left) || !is_valid_utf8(right)) refuse("a merge");
  if (!is_valid_utf8(parts.chat_template)) refuse("the chat template");
}

}  // namespace

void export_tokenizer(const fs::path& gguf, const fs::path& folder) {
  const GgufFile file(gguf);
  std::vector<const GgufEntry*> kept;
  for (const GgufEntry& entry : file.entries())
    if (entry.key.starts_with("tokenizer.") || entry.key == "general.architecture")
      kept.push_back(&entry);
  write_file(folder / kTokenizerGguf, gguf_of(kept, file.version()));
  if (file.find<std::string>("tokenizer.ggml.model") != "gpt2") return;
  const BpeParts parts = bpe_from_gguf(file);
  expect_utf8(parts);
  write_file(folder / "tokenizer.json", json_text(tokenizer_json(parts), 1) + "\n");
  write_file(folder / "tokenizer_config.json", json_text(config_json(parts), 2) + "\n");
}

}  // namespace medusa
