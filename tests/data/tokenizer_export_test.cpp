#include "data/tokenizer/tokenizer_export.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/formats/gguf_file.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/tokenizer_cases.h"

namespace medusa {
namespace {

using fixtures::small_tokenizer;
using fixtures::TempFolder;

void expect_same(const Tokenizer& a, const Tokenizer& b) {
  EXPECT_EQ(a.vocab_size(), b.vocab_size());
  EXPECT_EQ(a.bos(), b.bos());
  EXPECT_EQ(a.eos(), b.eos());
  EXPECT_EQ(a.adds_bos(), b.adds_bos());
  EXPECT_EQ(a.chat_template(), b.chat_template());
  for (const auto& text : fixtures::tokenizer_golden().at("texts").get<std::vector<std::string>>())
    EXPECT_EQ(a.encode(text, true), b.encode(text, true)) << text;
  for (TokenId id = 0; id < static_cast<TokenId>(a.vocab_size()); id += 37) {
    EXPECT_EQ(a.bytes(id), b.bytes(id));
    EXPECT_EQ(a.is_special(id), b.is_special(id));
  }
}

TEST(TokenizerExport, TheFolderHasTheSameTokenizerInBothForms) {
  for (const auto& file : {small_tokenizer("gpt2.gguf"), fixtures::demo_model()}) {
    SCOPED_TRACE(file);
    const TempFolder folder;
    export_tokenizer(file, folder.path());
    const auto original = load_tokenizer(file), copy = load_tokenizer(folder.path());
    EXPECT_EQ(copy->fingerprint(), original->fingerprint());
    expect_same(*copy, *original);
    expect_same(*load_tokenizer(folder / "tokenizer.json"), *original);
    // Of the many megabytes of tensors nothing is left.
    EXPECT_LT(std::filesystem::file_size(folder / kTokenizerGguf), 16U << 20);
  }
}

TEST(TokenizerExport, ASentencePieceTokenizerStaysAGguf) {
  const auto file = small_tokenizer("bpe.gguf");
  const TempFolder folder;
  export_tokenizer(file, folder.path());
  const auto original = load_tokenizer(file), copy = load_tokenizer(folder.path());
  EXPECT_EQ(copy->fingerprint(), original->fingerprint());
  expect_same(*copy, *original);
  EXPECT_FALSE(std::filesystem::exists(folder / "tokenizer.json"));
}

TEST(TokenizerExport, ATokenThatIsNotUtf8IsTheUsersError) {
  const TempFolder folder;
  const auto good = small_tokenizer("gpt2.gguf");
  const auto tokens = GgufFile(good).required<std::vector<std::string>>("tokenizer.ggml.tokens");
  std::string bytes = read_file(good);
  const size_t at = bytes.find(tokens.back());
  ASSERT_NE(at, std::string::npos);
  bytes[at] = '\xff';
  write_file(folder / "bad.gguf", bytes);
  const std::string text =
      fixtures::error_text([&] { export_tokenizer(folder / "bad.gguf", folder.path()); });
  EXPECT_NE(text.find(fmt::format("token {} is not UTF-8", tokens.size() - 1)), std::string::npos)
      << text;
}

}  // namespace
}  // namespace medusa
