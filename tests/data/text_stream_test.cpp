#include "data/tokenizer/text_stream.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/data/byte_tokenizer.h"
#include "tests/data/random_text.h"

namespace medusa {
namespace {

using fixtures::ByteTokenizer;

std::string shown(const std::vector<TokenId>& ids, bool show_special = false) {
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, show_special);
  std::string text;
  for (const TokenId id : ids) text += stream.add(id);
  return text + "|" + stream.finish();
}

TEST(TextStream, WaitsForTheWholeCharacter) {
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer);
  EXPECT_EQ(stream.add('a'), "a");
  EXPECT_EQ(stream.add(0xE2), "");
  EXPECT_EQ(stream.add(0x82), "");
  EXPECT_EQ(stream.add(0xAC), "€");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, ReplacesBytesOnceTheyAreCertainToBeInvalid) {
  EXPECT_EQ(shown({0xFF, 'a'}), "\uFFFDa|");
  EXPECT_EQ(shown({0xE2, 0x82, 'a'}), "\uFFFDa|");
  EXPECT_EQ(shown({0xED, 0xA0, 0x80}), "\uFFFD\uFFFD\uFFFD|");  // a surrogate
  EXPECT_EQ(shown({0xC0, 0x80}), "\uFFFD\uFFFD|");              // overlong
  EXPECT_EQ(shown({'a', 0xF0, 0x9F}), "a|\uFFFD");
}

TEST(TextStream, DropsAnUnfinishedCharacterWhereItIsTold) {
  const ByteTokenizer tokenizer;
  TextUntilStop text(tokenizer, {"ab"});
  EXPECT_EQ(text.add('a'), "") << "it may begin the stop text";
  EXPECT_EQ(text.add(0xF0), "");
  text.drop_unfinished();
  EXPECT_EQ(text.finish(), "a") << "what is held back for a stop text is whole";
}

TEST(TextStream, HidesSpecialTokensUnlessAsked) {
  EXPECT_EQ(shown({'a', ByteTokenizer::kSpecial, 'b'}), "ab|");
  EXPECT_EQ(shown({'a', ByteTokenizer::kSpecial, 'b'}, true), "a<end>b|");
  EXPECT_EQ(shown({0xC3, ByteTokenizer::kSpecial, 0xA9}), "é|");
}

TEST(TextStream, EqualsTheRepairedWholeForAnyBytes) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = fixtures::random_text(random, 12);
    for (int j = 0; j < 3 && !bytes.empty(); ++j)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    std::vector<TokenId> ids;
    for (const char byte : bytes) ids.push_back(static_cast<uint8_t>(byte));
    auto text = shown(ids);
    text.erase(text.rfind('|'), 1);
    EXPECT_EQ(text, repair_utf8(bytes));
    EXPECT_TRUE(is_valid_utf8(text));
  }
}

TEST(StopMatcher, CutsBeforeTheStopStringHoweverItArrives) {
  StopMatcher matcher({"###", "\nUser:"});
  EXPECT_EQ(matcher.add("Hello #"), "Hello ");
  EXPECT_EQ(matcher.add("# "), "## ");
  EXPECT_EQ(matcher.add("and\nUs"), "and");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.add("er: more"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.add("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, TakesTheStopThatIsCompleteFirstHoweverItArrives) {
  for (const size_t size : {1U, 2U, 5U}) {
    StopMatcher matcher({"bcde", "cd", "bcd"});
    const std::string text = "abcde";
    std::string out;
    for (size_t at = 0; at < text.size(); at += size) out += matcher.add(text.substr(at, size));
    EXPECT_EQ(out + matcher.finish(), "a") << size;  // "bcd" and "cd" end together
    EXPECT_TRUE(matcher.stopped());
  }
}

TEST(StopMatcher, GivesBackWhatItHeldWhenTheTextEnds) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.add("xaa"), "x");
  EXPECT_EQ(matcher.add("a"), "a");  // "aa" may still begin the stop
  EXPECT_EQ(matcher.finish(), "aa");
  EXPECT_FALSE(matcher.stopped());
  StopMatcher none({});
  EXPECT_EQ(none.add("anything"), "anything");
}

TEST(StopMatcher, AgreesWithSearchingTheWholeText) {
  std::mt19937 random(9);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (int j = 0; j < 20; ++j) text += static_cast<char>('a' + random() % 2);
    const std::string stop = text.substr(random() % 15, 1 + random() % 5) + "b";
    StopMatcher matcher({stop});
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 4;
      out += matcher.add(text.substr(at, size));
      at += size;
    }
    out += matcher.finish();
    EXPECT_EQ(out, text.substr(0, text.find(stop))) << text << " " << stop;
  }
}

}  // namespace
}  // namespace medusa
