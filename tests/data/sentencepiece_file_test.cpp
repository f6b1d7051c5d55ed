// tokenizer.model and tokenizer.json of the SentencePiece kind. What they do to text is compared in
// tokenizer_digest_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/file.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/base/error_text.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"
#include "tests/data/random_text.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::TempFolder;
using Ids = std::vector<TokenId>;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(MEDUSA_SOURCE_DIR) / "tests/golden/tokenizers" / name;
}

TEST(SentencePieceFile, ReadsAModelAndWhatTheFolderAdds) {
  const TempFolder folder;
  std::filesystem::copy(golden("bpe.model"), folder / "tokenizer.model");
  const auto alone = load_tokenizer(folder.path());
  EXPECT_EQ(alone->vocab_size(), 500);
  EXPECT_EQ(alone->bos(), 1);
  EXPECT_EQ(alone->eos(), 2);
  EXPECT_TRUE(alone->adds_bos());
  EXPECT_EQ(alone->find("<tool>"), 3);
  EXPECT_FALSE(alone->is_special(3));
  EXPECT_EQ(alone->decode(alone->encode("A \u00e9<tool>\n", false)), " A \u00e9<tool>\n");
  write_file(folder / "tokenizer_config.json",
             R"({"eos_token": "<|end|>", "add_bos_token": false, "chat_template": "T",
    "added_tokens_decoder": {"500": {"content": "<|end|>", "special": true, "rstrip": true}}})");
  const auto chat = load_tokenizer(folder.path());
  EXPECT_EQ(chat->vocab_size(), 501);
  EXPECT_EQ(chat->eos(), 500);
  EXPECT_FALSE(chat->adds_bos());
  EXPECT_EQ(chat->chat_template(), "T");
  const auto ids = chat->encode("a<|end|>  a", true);
  const auto word = chat->encode("a", false);
  EXPECT_EQ(ids.size(), 2 * word.size() + 1);
  EXPECT_EQ(ids[word.size()], 500);
  EXPECT_NE(chat->fingerprint(), alone->fingerprint());
}

/// A tokenizer's parts as the metadata of a GGUF file.
fixtures::GgufBuilder as_gguf(const SentencePieceParts& parts, const std::string& kind) {
  std::vector<int32_t> types(parts.pieces.size(), 1);
  for (const auto& token : parts.added)
    types[static_cast<size_t>(token.id)] = token.special ? 3 : 4;
  for (const TokenId id : parts.byte_pieces) types[static_cast<size_t>(id)] = 6;
  fixtures::GgufBuilder builder;
  builder.text("tokenizer.ggml.model", kind)
      .strings("tokenizer.ggml.tokens", parts.pieces)
      .f32s("tokenizer.ggml.scores", {parts.scores.begin(), parts.scores.end()})
      .i32s("tokenizer.ggml.token_type", types)
      .u32("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(*parts.unknown));
  return builder;
}

TEST(SentencePieceFile, SaysTheSameAsGguf) {
  const TempFolder folder;
  std::mt19937 random(8);
  for (const auto& [name, kind, adds_space] :
       {std::tuple{"bpe.model", "llama", true}, std::tuple{"unigram_bytes.model", "t5", false}}) {
    const auto builder = as_gguf(sentencepiece_from_model(golden(name)), kind)
                             .boolean("tokenizer.ggml.add_space_prefix", adds_space);
    const auto gguf = load_tokenizer(builder.write(folder / "m.gguf"));
    const auto model = load_tokenizer(golden(name));
    for (int i = 0; i < 300; ++i) {
      const auto text = fixtures::random_text(random, 40);
      EXPECT_EQ(gguf->encode(text, false), model->encode(text, false)) << name << ": " << text;
    }
  }
}

std::string load_error(const std::string& name, const std::string& bytes) {
  const TempFolder folder;
  write_file(folder / name, bytes);
  const auto error = error_text([&] { load_tokenizer(folder.path()); });
  const std::string prefix = (folder / name).string() + ": ";
  return error.starts_with(prefix) ? error.substr(prefix.size()) : error;
}

/// A message with one piece "a" and this trainer.
std::string small_model(const std::string& trainer, char type = 1) {
  return std::string("\x0A\x05\x0A\x01") + "a\x18" + type + "\x12" +
         static_cast<char>(trainer.size()) + trainer;
}

TEST(SentencePieceFile, RefusesWhatItCannotRun) {
  const std::string use = "; use the tokenizer.json or GGUF file of the model";
  EXPECT_EQ(load_error("tokenizer.model", small_model("\x18\x03")),
            "the model is of type 3, expected 1 (unigram) or 2 (BPE)" + use);
  EXPECT_EQ(load_error("tokenizer.model", small_model(std::string("\xC0\x01\x01", 3))),
            "spaces belong to the word before them, expected behind them" + use);
  EXPECT_EQ(load_error("tokenizer.model", small_model("", 7)),
            "the piece 'a' is of type 7, expected 1 to 6" + use);
  EXPECT_EQ(load_error("tokenizer.model", small_model("\x18")),
            "its fields cannot be read (0 bytes before the end), expected a SentencePiece model; "
            "copy or download it again");
  EXPECT_EQ(load_error("tokenizer.model", small_model("")),
            "neither all 256 byte pieces nor an unknown token are there, expected one of them; "
            "convert or download the tokenizer again");
}

constexpr const char* kUnigram =
    R"({"added_tokens": [{"id": 5, "content": "<end>", "special": true}],
 "normalizer": {"type": "NFKC"},
 "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
 "post_processor": null,
 "model": {"type": "Unigram", "unk_id": 0,
  "vocab": [["<unk>", 0], ["▁", -2], ["a", -3], ["▁ab", -4.5], ["b", -1]]}})";

std::string json_with(const std::string& from, const std::string& to) {
  std::string text = kUnigram;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(SentencePieceJson, CutsWhereTheSumOfScoresIsHighest) {
  const TempFolder folder;
  write_file(folder / "tokenizer.json", kUnigram);
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), 6);
  EXPECT_EQ(tokenizer->encode("ab", false), Ids{3});  // -4.5 against -2 - 3 - 1
  EXPECT_EQ(tokenizer->encode("a b", false), (Ids{1, 2, 1, 4}));
  EXPECT_EQ(tokenizer->encode("??b", false), (Ids{1, 0, 4}));  // one token for both
  EXPECT_EQ(tokenizer->encode("<unk>", true), (Ids{1, 0}));    // no control token: unknown text
  EXPECT_EQ(tokenizer->encode("b<end>b", true), (Ids{1, 4, 5, 1, 4}));
  EXPECT_TRUE(tokenizer->is_special(0));
}

TEST(SentencePieceJson, RefusesWhatItCannotRun) {
  const std::string use =
      "; use a model with a byte-level BPE or SentencePiece tokenizer, or its GGUF file";
  const auto refused = [&](const std::string& from, const std::string& to) {
    return load_error("tokenizer.json", json_with(from, to));
  };
  EXPECT_EQ(refused("Unigram", "WordPiece"),
            "the model is 'WordPiece', expected BPE or Unigram" + use);
  EXPECT_EQ(refused("NFKC", "Precompiled"),
            "the normalizer is 'Precompiled', expected Prepend, Replace, NFC, NFD, NFKC, NFKD or a "
            "Sequence of these (a model with its own character map is read from tokenizer.model)" +
                use);
  EXPECT_EQ(refused("\"▁\", \"prepend", "\"_\", \"prepend"),
            "a space is written '_', expected U+2581" + use);
  EXPECT_EQ(refused("always", "last"),
            "'prepend_scheme' is 'last', expected always, first or never" + use);
  EXPECT_EQ(refused("Metaspace", "Whitespace"),
            "the pre-tokenizer is 'Whitespace', expected none or Metaspace, or ByteLevel for a "
            "byte-level model" +
                use);
  EXPECT_EQ(refused("\"unk_id\": 0", "\"unk_id\": 6"),
            "'unk_id' is 6, expected an id of the vocabulary" + use);
  EXPECT_EQ(refused("[\"a\", -3]", "[\"a\"]"),
            "an entry of the vocabulary is no pair, expected [\"text\", score]" + use);
  EXPECT_EQ(refused("\"id\": 5", "\"id\": 7"), "'<end>' has the id 7, expected the id 5" + use);
  EXPECT_EQ(refused("-4.5", "-1e999"),
            "has a number beyond all bounds, expected one that fits into 64 bits; copy or download "
            "it again");
  EXPECT_EQ(load_error("tokenizer.json", std::string(101, '[')),
            "nests lists or objects more than 100 deep, expected at most that; copy or "
            "download it again");
}

}  // namespace
}  // namespace medusa
