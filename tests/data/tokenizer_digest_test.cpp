// 10 000 random texts through every kind of tokenizer, against the digests of what the packages
// sentencepiece and tokenizers make of them (tools/dev/make_tokenizer_golden.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/fingerprint.h"
#include "base/utf8.h"
#include "data/json.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/data/random_text.h"
#include "tests/data/tokenizer_cases.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// Numbers of SplitMix64 (Steele et al., 2014), which are quickly written in any language.
class Draw {
 public:
  uint32_t operator()(uint64_t below) {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return static_cast<uint32_t>((z ^ z >> 31) % below);
  }

 private:
  uint64_t state_ = 2026;
};

std::vector<std::string> random_texts(size_t count) {
  static const std::string kPieces[] = {
      "the",     " the",   "  ",     "\n",     "\r\n",          "\t",      "'s",          "'LL",
      "12",      "3456",   "Été",    "\u3000", "\u2581",        "e\u0301", "👩‍💻", "!?",
      "don't",   "\u2028", ".",      "<s>",    " </s> ",        "<tool>",  "  <tool>  ",  "<sep>",
      "a<sep>b", "<unk>",  "\uFB01", "\uFF21", "<|endoftext|>", "<pad>"};
  // Devanagari, symbols, Chinese, pictures, Korean, private and compatibility characters.
  static constexpr std::pair<uint32_t, uint32_t> kRanges[] = {{0x900, 0x70},    {0x2000, 0xC00},
                                                              {0x4E00, 0x51A5}, {0x1F300, 0x200},
                                                              {0xAC00, 0x2BA4}, {0xE000, 0x1B00}};
  Draw draw;
  std::vector<std::string> texts(count);
  for (auto& text : texts) {
    for (uint32_t i = draw(41); i > 0; --i) {
      const uint32_t kind = draw(8);
      if (kind < 3) {
        text += static_cast<char>('a' + draw(26));
      } else if (kind == 3) {
        text += kPieces[draw(std::size(kPieces))];
      } else if (kind == 4) {
        text += static_cast<char>(1 + draw(0x7F));
      } else if (kind == 5) {
        text += ' ';
      } else if (kind == 6) {
        fixtures::append_utf8(text, 1 + draw(0x600));
      } else {
        const auto& [first, size] = kRanges[draw(std::size(kRanges))];
        fixtures::append_utf8(text, first + draw(size));
      }
    }
  }
  return texts;
}

using Encode = std::function<std::vector<int64_t>(const std::string&)>;

/// One digest for each block of texts.
std::vector<std::string> digests(const Encode& encode, size_t count, size_t block) {
  const auto texts = random_texts(count);
  std::vector<std::string> result;
  for (size_t begin = 0; begin < count; begin += block) {
    Fingerprint hash;
    for (size_t i = begin; i < begin + block; ++i) {
      for (const int64_t id : encode(texts[i])) hash.add(id);
      hash.add(int64_t{-1});
    }
    result.push_back(hash.digest().substr(std::string("sha256:").size(), 16));
  }
  return result;
}

/// Where each word ends, in characters.
Encode word_ends(const std::string& name) {
  const auto cutter = std::make_shared<PreTokenizer>(PreTokenizer::named(name, "test"));
  return [cutter](const std::string& text) {
    std::vector<int64_t> ends;
    int64_t at = 0;
    cutter->split(text, [&](std::string_view word) {
      while (!word.empty()) {
        word.remove_prefix(read_utf8(word).size);
        ++at;
      }
      ends.push_back(at);
    });
    return ends;
  };
}

Encode ids_of(std::unique_ptr<Tokenizer> opened, bool parse_special) {
  const std::shared_ptr<Tokenizer> tokenizer = std::move(opened);
  return [tokenizer, parse_special](const std::string& text) {
    const auto ids = tokenizer->encode(text, parse_special);
    return std::vector<int64_t>(ids.begin(), ids.end());
  };
}

Encode open(const std::string& name) {
  if (name.starts_with("words/")) return word_ends(name.substr(6));
  const auto path = fixtures::small_tokenizer(name);
  if (name == "qwen2")
    return ids_of(std::make_unique<BpeTokenizer>(bpe_from_vocab(path, "qwen2", Normalization::Nfc)),
                  true);
  // sentencepiece knows no control tokens in text, tokenizers always reads them.
  return ids_of(load_tokenizer(path), !name.ends_with(".model"));
}

TEST(TokenizerDigests, RandomTextsBecomeTheSameIdsAsInThePackages) {
  const Json golden = read_json_file(MEDUSA_SOURCE_DIR "/tests/golden/tokenizer_digests.json");
  const size_t count = golden["texts"].get<size_t>();
  const size_t block = golden["block"].get<size_t>();
  EXPECT_EQ(golden["digests"].size(), 15U);
  for (const auto& [name, expected] : golden["digests"].items())
    EXPECT_EQ(digests(open(name), count, block), expected.get<std::vector<std::string>>()) << name;
}

}  // namespace
}  // namespace medusa
