#include "data/tokenizer/tokenizer_export.h"

#include <gtest/gtest.h>

#include "data/tokenizer/tokenizer.h"
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

}  // namespace
}  // namespace medusa
