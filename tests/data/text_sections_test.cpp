#include "data/tokenizer/text_sections.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

using fixtures::error_text;
using Prefix = TextNormalizer::Prefix;
using Replace = TextNormalizer::Replace;

std::string applied(const TextNormalizer::Step& step, std::string_view text,
                    SectionStart start = SectionStart::Text) {
  TextNormalizer normalizer;
  normalizer.add(step);
  return normalizer.apply(text, start);
}

TEST(TextNormalizer, RunsEachKindOfStep) {
  EXPECT_EQ(applied(Normalization::Nfc, "e\u0301"), "\u00e9");
  EXPECT_EQ(applied(Normalization::Nfkd, "\uFB01\u00e9"), "fie\u0301");
  EXPECT_EQ(applied(Replace{" ", "__"}, " a  b"), "__a____b");
  EXPECT_EQ(applied(TextNormalizer::TrimSpaces{}, "  a   b \u2581 "), "a b");
  EXPECT_EQ(applied(TextNormalizer::TrimSpaces{}, "  \u2581"), "");
}

TEST(TextNormalizer, PutsAPrefixWhereItBelongs) {
  EXPECT_EQ(applied(Prefix{"_"}, "_a", SectionStart::OrdinaryToken), "__a");
  EXPECT_EQ(applied(Prefix{"_", SectionStart::OrdinaryToken, true}, "_a"), "_a");
  EXPECT_EQ(applied(Prefix{"_", SectionStart::SpecialToken}, "a", SectionStart::SpecialToken),
            "_a");
  EXPECT_EQ(applied(Prefix{"_", SectionStart::SpecialToken}, "a", SectionStart::OrdinaryToken),
            "a");
  EXPECT_EQ(applied(Prefix{"_", SectionStart::Text}, "a", SectionStart::SpecialToken), "a");
  EXPECT_EQ(applied(Prefix{"_"}, ""), "");
}

std::string split(const TextSections& sections, std::string_view text, bool special = true) {
  std::string out;
  sections.split(
      text, special,
      [&](std::string_view section, SectionStart start) {
        out += fmt::format("{}({})", static_cast<int>(start), section);
      },
      [&](TokenId id) { out += fmt::format("<{}>", id); });
  return out;
}

TEST(TextSections, FindsSomeTokensBeforeAndSomeAfterNormalizing) {
  TextNormalizer normalizer;
  normalizer.add(Replace{"b", "c"});
  AddedToken before{1, "b", true};
  AddedToken after{2, "x", false};
  after.normalized = "cc";
  EXPECT_EQ(split({{after}, normalizer}, "abba"), "0(a)<2>2(a)");
  EXPECT_EQ(split({{before, after}, normalizer}, "abba"), "0(a)<1><1>1(a)");
  EXPECT_EQ(split({{before, after}, normalizer}, "abba", false), "0(a)<2>2(a)");
  EXPECT_EQ(TextSections({before, after}, normalizer).find("x")->id, 2);
  EXPECT_EQ(TextSections({before, after}, normalizer).find("cc"), nullptr);
  EXPECT_EQ(split({{}, {}}, "a\xFF"), "0(a\uFFFD)");
}

/// A map of "a" to "z" alone: its root at 0, a's node at 1 ^ 'a', the value 2 places further.
std::string small_map() {
  std::vector<uint32_t> units(128, 0);
  units[0] = 1U << 10;
  units[1 ^ 'a'] = 'a' | 1U << 8 | 2U << 10;
  units[(1 ^ 'a') ^ 2] = 1U << 31 | 1;
  std::string blob = {0, 2, 0, 0};
  for (const uint32_t unit : units)
    for (int shift = 0; shift < 32; shift += 8) blob += static_cast<char>(unit >> shift & 0xFF);
  return blob + '\0' + "zz" + '\0';
}

TEST(CharacterMap, ReplacesWhatItKnows) {
  EXPECT_EQ(CharacterMap(small_map(), "m").apply("abca"), "zzbczz");
}

TEST(CharacterMap, RefusesADamagedMap) {
  const auto refused = [](const std::string& blob) {
    return error_text([&] { CharacterMap(blob, "m"); });
  };
  const std::string rest =
      ", expected the character map of a SentencePiece model; the file is damaged, copy or "
      "download "
      "it again";
  EXPECT_EQ(refused("abc"), "m: its character map has 3 bytes" + rest);
  std::string blob = small_map();
  blob[1] = 3;
  EXPECT_EQ(refused(blob),
            "m: its character map of 520 bytes says that 768 of these are its trie" + rest);
  blob = small_map();
  blob.back() = 'a';
  EXPECT_EQ(refused(blob),
            "m: the replacements of its character map do not end with a zero byte" + rest);
  blob = small_map();
  blob[4 + 4 * ((1 ^ 'a') ^ 2)] = 9;
  EXPECT_EQ(refused(blob), "m: a value of its character map lies at byte 9 of 4" + rest);
}

}  // namespace
}  // namespace medusa
