#include "data/tokenizer_export.h"

#include <gtest/gtest.h>

#include "data/tokenizer.h"
#include "tests/base/temp_folder.h"
#include "tests/data/tokenizer_cases.h"

namespace medusa {
namespace {

using fixtures::TempFolder;
using fixtures::tokenizer_folder;

void expect_same(const Tokenizer& a, const Tokenizer& b, const std::filesystem::path& cases) {
  EXPECT_EQ(a.vocab_size(), b.vocab_size());
  EXPECT_EQ(a.bos(), b.bos());
  EXPECT_EQ(a.eos(), b.eos());
  EXPECT_EQ(a.adds_bos(), b.adds_bos());
  EXPECT_EQ(a.chat_template(), b.chat_template());
  for (const auto& [text, ids] : fixtures::read_cases(cases))
    EXPECT_EQ(a.encode(text, true), b.encode(text, true)) << text;
  for (TokenId id = 0; id < static_cast<TokenId>(a.vocab_size()); id += 37) {
    EXPECT_EQ(a.bytes(id), b.bytes(id));
    EXPECT_EQ(a.is_special(id), b.is_special(id));
  }
}

TEST(TokenizerExport, TheFolderHasTheSameTokenizerInBothForms) {
  for (const auto& [name, file] : {std::pair<std::string, std::filesystem::path>{
                                       "gpt-2", tokenizer_folder("gpt-2") / "vocab.gguf"},
                                   {"qwen2", tokenizer_folder("qwen2") / "vocab.gguf"},
                                   {"smollm", fixtures::smollm2_path()}}) {
    if (!std::filesystem::exists(file)) continue;  // those that are there
    SCOPED_TRACE(name);
    const TempFolder folder;
    export_tokenizer(file, folder.path());
    const auto original = load_tokenizer(file), copy = load_tokenizer(folder.path());
    EXPECT_EQ(copy->fingerprint(), original->fingerprint());
    expect_same(*copy, *original, tokenizer_folder(name));
    expect_same(*load_tokenizer(folder / "tokenizer.json"), *original, tokenizer_folder(name));
    // Of the many megabytes of tensors nothing is left.
    EXPECT_LT(std::filesystem::file_size(folder / kTokenizerGguf), 16U << 20);
  }
}

TEST(TokenizerExport, ASentencePieceTokenizerStaysAGguf) {
  const auto file = tokenizer_folder("llama-spm") / "vocab.gguf";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const TempFolder folder;
  export_tokenizer(file, folder.path());
  const auto original = load_tokenizer(file), copy = load_tokenizer(folder.path());
  EXPECT_EQ(copy->fingerprint(), original->fingerprint());
  expect_same(*copy, *original, tokenizer_folder("llama-spm"));
  EXPECT_FALSE(std::filesystem::exists(folder / "tokenizer.json"));
}

}  // namespace
}  // namespace medusa
