#include "data/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/tokenizer/tokenizer_files.h"
#include "tests/base/error_text.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::GgufBuilder;
using fixtures::TempFolder;
using Ids = std::vector<TokenId>;

constexpr const char* kModel = R"({"added_tokens": [
    {"id": 4, "content": "<end>", "special": true},
    {"id": 5, "content": "<bos>", "special": true, "lstrip": true}],
  "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "aa": 2, "ab": 3, "Ã": 6, "©": 7},
    "merges": ["a a", ["a", "b"]]}})";

/// A copy of kModel with one text replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kModel;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& json) {
  const TempFolder folder;
  write_file(folder / "tokenizer.json", json);
  const auto error = error_text([&] { load_tokenizer(folder.path()); });
  const std::string prefix = folder.path().string() + "/tokenizer.json: ";
  return error.starts_with(prefix) ? error.substr(prefix.size()) : error;
}

TEST(LoadTokenizer, MergesThatAreLeftOutAtRandomAreRefused) {
  EXPECT_EQ(
      error_of(changed(R"("type": "BPE",)", R"("type": "BPE", "dropout": 0.1,)")),
      "the model leaves out merges by chance (0.1), expected a dropout of null or 0; use a model "
      "with a byte-level BPE or SentencePiece tokenizer, or its GGUF file");
  EXPECT_EQ(error_of(changed(R"("type": "BPE",)", R"("type": "BPE", "dropout": null,)")),
            "(no error)");
}

TEST(LoadTokenizer, WhatAModelHasBeyondTheVocabularyIsNoText) {
  const TempFolder folder;
  write_file(folder / "tokenizer.json", kModel);
  for (const std::filesystem::path& file :
       {folder / "tokenizer.json",
        std::filesystem::path(MEDUSA_SOURCE_DIR) / "tests/golden/tokenizers/bpe.model"}) {
    const auto tokenizer = load_tokenizer(file);
    const auto beyond = static_cast<TokenId>(tokenizer->vocab_size());
    EXPECT_EQ(tokenizer->bytes(beyond), "");
    EXPECT_FALSE(tokenizer->is_special(beyond));
    EXPECT_EQ(tokenizer->decode(Ids{0, beyond, 0}), tokenizer->decode(Ids{0, 0}));
  }
}

TEST(LoadTokenizer, ReadsTokenizerJsonAndTheConfigurationBesideIt) {
  const TempFolder folder;
  write_file(folder / "tokenizer.json", kModel);
  write_file(folder / "tokenizer_config.json",
             R"({"bos_token": {"content": "<bos>"}, "eos_token": "<end>", "chat_template": "T"})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), 8);
  EXPECT_EQ(tokenizer->encode("aaab", false), (Ids{2, 0, 1}));  // b stands alone
  EXPECT_EQ(tokenizer->encode("a <bos>a<end>", true), (Ids{0, 5, 0, 4}));
  EXPECT_EQ(tokenizer->encode("e\u0301", false), (Ids{6, 7}));  // composed to é
  EXPECT_EQ(tokenizer->bos(), 5);
  EXPECT_EQ(tokenizer->eos(), 4);
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->chat_template(), "T");
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->fingerprint(), tokenizer->fingerprint());
  write_file(folder / "chat_template.jinja", "U");
  EXPECT_EQ(load_tokenizer(folder.path())->chat_template(), "U");
}

TEST(LoadTokenizer, ATokenThatThePostProcessorPutsFirstIsBosWhereNobodySays) {
  const TempFolder folder;
  write_file(folder / "tokenizer.json", kModel);
  for (const char* config : {"", "{}"}) {
    if (*config != 0) write_file(folder / "tokenizer_config.json", config);
    const auto tokenizer = load_tokenizer(folder.path());
    EXPECT_EQ(tokenizer->bos(), 5);
    EXPECT_TRUE(tokenizer->adds_bos());
  }
  write_file(folder / "tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_FALSE(load_tokenizer(folder.path())->adds_bos());
}

/// As transformers does.
TEST(LoadTokenizer, TokensThatTheConfigurationAloneNamesAreNotCut) {
  const TempFolder folder;
  write_file(folder / "tokenizer.json", kModel);
  write_file(folder / "tokenizer_config.json",
             R"({"added_tokens_decoder": {"5": {"content": "<bos>", "special": true},
                                          "8": {"content": "<x>", "special": true}},
                 "additional_special_tokens": [{"content": "aa"}, "<bos>"], "eos_token": "©"})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->encode("aa<x>a©", true), (Ids{2, 8, 0, 7}));
  for (const TokenId special : {7, 8}) EXPECT_TRUE(tokenizer->is_special(special)) << special;
  EXPECT_FALSE(tokenizer->is_special(2)) << "merges make it";
  EXPECT_EQ(tokenizer->eos(), 7);
}

/// The ids of the package tokenizers.
TEST(LoadTokenizer, AnAddedTokenThatTheModelDoesNotKnowIsNoPiece) {
  struct Case {
    const char *file, *added, *text;
    int id;
    bool single_word;
    Ids ids;
  };
  for (const auto& [file, added, text, id, single_word, ids] :
       {Case{"llama.json", "é", "café", 500, false, {273, 416, 432, 200, 174}},
        Case{"unigram.json", "ell", "hello ell", 502, true, {5, 102, 19, 230, 34, 5, 502}}}) {
    const TempFolder folder;
    const auto golden = std::filesystem::path(MEDUSA_SOURCE_DIR) / "tests/golden/tokenizers";
    auto json = nlohmann::json::parse(read_file(golden / file));
    json["added_tokens"].push_back(
        {{"id", id}, {"content", added}, {"normalized", true}, {"single_word", single_word}});
    write_file(folder / "tokenizer.json", json.dump());
    EXPECT_EQ(load_tokenizer(folder.path())->encode(text, false), ids) << file;
  }
}

TEST(LoadTokenizer, PatternsThatTwoLibrariesReadDifferentlyAreRefused) {
  const auto with = [](const std::string& regex) {
    return error_of(changed(R"({"String": "b"})", R"({"Regex": ")" + regex + R"("})"));
  };
  const std::string rest =
      ", expected a regular expression without it, which medusa would read otherwise than the "
      "model's authors; use the GGUF file of the model";
  EXPECT_EQ(with(R"([\\p{L}&&[^b]]+)"),
            R"(the pattern '[\p{L}&&[^b]]+' holds && in a class)" + rest);
  EXPECT_EQ(with("[a[bc]]"), "the pattern '[a[bc]]' holds a class in a class" + rest);
  EXPECT_EQ(with(R"(\\h+)"), R"(the pattern '\h+' holds \h)" + rest);
  for (const char* taken : {R"(a&&b)", R"([a&]+)", R"([[:alpha:]&]+)", R"([]\\[]|\\[)", R"(\\\\h)"})
    EXPECT_EQ(with(taken), "(no error)") << taken;
  const TempFolder folder;
  write_file(folder / "tokenizer.json", changed(R"("String": "b")", R"("String": "\\b")"));
  EXPECT_EQ(load_tokenizer(folder.path())->encode("aab", false), (Ids{2, 1}))
      << "a text, and no border of words";
}

TEST(LoadTokenizer, RefusesATokenizerJsonItDoesNotRun) {
  const std::string use =
      "; use a model with a byte-level BPE or SentencePiece tokenizer, or its GGUF file";
  EXPECT_EQ(error_of(changed("\"BPE\"", "\"WordPiece\"")),
            "the model is 'WordPiece', expected BPE" + use);
  EXPECT_EQ(error_of(changed("\"type\": \"BPE\"", "\"type\": \"BPE\", \"byte_fallback\": true")),
            "a byte-level model falls back to byte tokens, expected one or the other" + use);
  EXPECT_EQ(error_of(changed("\"NFC\"", "\"Lowercase\"")),
            "the normalizer is 'Lowercase', expected none, or one of NFC, NFD, NFKC, NFKD" + use);
  EXPECT_EQ(
      error_of(changed("\"type\": \"Split\"", "\"type\": \"Metaspace\"")),
      "the pre-tokenizer is 'Metaspace', expected ByteLevel, Digits, Split or a Sequence of these" +
          use);
  EXPECT_EQ(
      error_of(changed("\"type\": \"BPE\"", "\"type\": \"BPE\", \"end_of_word_suffix\": \"</w>\"")),
      "the model's 'end_of_word_suffix' is '</w>', expected none" + use);
  EXPECT_EQ(error_of(changed("Isolated", "MergedWithNext")),
            "a pre-tokenizer splits with 'MergedWithNext', expected Isolated or Removed" + use);
  EXPECT_EQ(error_of(changed("\"aa\": 2", "\"aa\": 3")),
            "'aa' has the id 3, expected the id 2: every id below 8 once" + use);
  EXPECT_EQ(error_of(changed("\"aa\": 2", "\"aa\": 2e9")),
            "the id of 'aa' is number, expected an integer" + use);
  EXPECT_EQ(
      error_of(changed("\"a a\"", "\"aa\"")),
      "a merge is neither two words nor a list of two, expected 'a b' or [\"a\", \"b\"]" + use);
  EXPECT_EQ(error_of(changed("\"model\"", "\"modell\"")),
            "has no 'model', which is needed; correct it or download the file again");
  EXPECT_EQ(error_of("{"),
            "is not JSON (at byte 2), expected a JSON file; copy or download it again");
}

GgufBuilder small_gguf(const std::string& model = "gpt2") {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", model)
      .text("tokenizer.ggml.pre", "gpt-2")
      .strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<end>", "<x>"})
      .i32s("tokenizer.ggml.token_type", {1, 1, 1, 3, 4})
      .strings("tokenizer.ggml.merges", {"a b"})
      .u32("tokenizer.ggml.eos_token_id", 3)
      .text("tokenizer.chat_template", "T");
  return builder;
}

std::string error_of(const GgufBuilder& builder) {
  const TempFolder folder;
  const auto error = error_text([&] { load_tokenizer(builder.write(folder / "m.gguf")); });
  const std::string prefix = (folder / "m.gguf").string() + ": ";
  return error.starts_with(prefix) ? error.substr(prefix.size()) : error;
}

TEST(LoadTokenizer, ReadsGgufMetadata) {
  const TempFolder folder;
  const auto tokenizer = load_tokenizer(small_gguf().write(folder / "m.gguf"));
  EXPECT_EQ(tokenizer->encode("ab<x><end>", true), (Ids{2, 4, 3}));
  EXPECT_TRUE(tokenizer->is_special(3));
  EXPECT_FALSE(tokenizer->is_special(4));
  EXPECT_EQ(tokenizer->eos(), 3);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->chat_template(), "T");
}

TEST(LoadTokenizer, SomeFamiliesOfGgufFilesTakeWordsWholeAndBeginWithBos) {
  const TempFolder folder;
  const auto tokenizer = [&](const char* pre) {
    GgufBuilder builder;
    builder.text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", pre)
        .strings("tokenizer.ggml.tokens", {"<s>", "a", "b", "c", "ab", "abc"})
        .i32s("tokenizer.ggml.token_type", {3, 1, 1, 1, 1, 1})
        .strings("tokenizer.ggml.merges", {"a b"})
        .u32("tokenizer.ggml.bos_token_id", 0);
    return load_tokenizer(builder.write(folder / "m.gguf"));
  };
  for (const char* pre : {"llama-bpe", "llama3", "falcon3", "tekken"}) {
    EXPECT_EQ(tokenizer(pre)->encode("abc", true), (Ids{5})) << pre;
    EXPECT_TRUE(tokenizer(pre)->adds_bos()) << pre;
  }
  EXPECT_EQ(tokenizer("gpt-2")->encode("abc", true), (Ids{4, 3}));
  EXPECT_FALSE(tokenizer("gpt-2")->adds_bos());
}

TEST(LoadTokenizer, AGgufOfTheLlamaFamilyHasItsUsualTokensWhereItDoesNotSay) {
  const TempFolder folder;
  const auto tokenizer = [&](std::vector<int32_t> types) {
    GgufBuilder builder;
    builder.text("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"})
        .f32s("tokenizer.ggml.scores", {0, 0, 0, 0})
        .i32s("tokenizer.ggml.token_type", std::move(types))
        .u32("tokenizer.ggml.unknown_token_id", 0);
    return load_tokenizer(builder.write(folder / "m.gguf"));
  };
  const auto usual = tokenizer({2, 3, 3, 1});
  EXPECT_EQ(usual->bos(), 1);
  EXPECT_EQ(usual->eos(), 2);
  EXPECT_TRUE(usual->adds_bos());
  const auto words = tokenizer({2, 1, 1, 1});
  EXPECT_FALSE(words->bos()) << "a word begins nothing";
  EXPECT_FALSE(words->eos());
}

TEST(LoadTokenizer, RefusesAGgufThatDoesNotFitTogether) {
  EXPECT_EQ(error_of(small_gguf("bert")),
            "tokenizer.ggml.model is 'bert', expected 'gpt2' (byte-level BPE), 'llama' or 't5' "
            "(SentencePiece); use a model with one of these tokenizers");
  EXPECT_EQ(
      error_of(small_gguf().u32("tokenizer.ggml.bos_token_id", 5)),
      "the metadata key 'tokenizer.ggml.bos_token_id' is 5, expected an id below 5; convert or "
      "download the model again");
  EXPECT_EQ(error_of(small_gguf().boolean("tokenizer.ggml.add_bos_token", true)),
            "the metadata key 'tokenizer.ggml.add_bos_token' is true, found no "
            "'tokenizer.ggml.bos_token_id', expected the token that prompts begin with; convert or "
            "download the model again");
  EXPECT_EQ(error_of(small_gguf("llama").f32s("tokenizer.ggml.scores", {0.0F})),
            "the metadata key 'tokenizer.ggml.scores' has 1 elements, expected 5 as "
            "'tokenizer.ggml.tokens' has; convert or download the model again");
  EXPECT_EQ(
      error_of(GgufBuilder()
                   .text("tokenizer.ggml.model", "gpt2")
                   .strings("tokenizer.ggml.tokens", {"a"})
                   .strings("tokenizer.ggml.merges", {"aa"})),
      "the merge 'aa' is one word, expected two with a space between them; convert or download "
      "the model again");
}

TEST(LoadTokenizer, ReadsVocabAndMergesOfAFamilyItKnows) {
  const TempFolder folder;
  EXPECT_EQ(error_text([&] { load_tokenizer(folder.path()); }),
            folder.path().string() +
                ": holds no tokenizer, expected tokenizer.json, tokenizer.model, or vocab.json and "
                "merges.txt; add the file that came with the model");
  write_file(folder / "vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write_file(folder / "merges.txt", "#version: 0.2\na b\r\n");
  EXPECT_EQ(error_text([&] { load_tokenizer(folder.path()); }),
            folder.path().string() +
                ": has vocab.json and merges.txt, but no tokenizer_config.json that says of which "
                "family they are, expected one or tokenizer.json; download the whole folder");
  const auto config = folder / "tokenizer_config.json";
  write_file(config, R"({"tokenizer_class": "T5Tokenizer"})");
  EXPECT_EQ(
      error_text([&] { load_tokenizer(folder.path()); }),
      config.string() +
          ": 'tokenizer_class' is 'T5Tokenizer', expected GPT2Tokenizer or Qwen2Tokenizer; add "
          "the model's tokenizer.json to the folder");
  write_file(config, R"({"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<end>",
    "added_tokens_decoder": {"3": {"content": "<end>", "special": true}}})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->encode("ab<end>", true), (Ids{2, 3}));
  EXPECT_EQ(tokenizer->eos(), 3);
}

}  // namespace
}  // namespace medusa
