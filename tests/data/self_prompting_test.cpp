// Topics and the filter of prompts that a model writes for itself.

#include <gtest/gtest.h>

#include <set>

#include "data/question_filter.h"
#include "data/starter_topics.h"

namespace medusa {
namespace {

TEST(StarterTopics, AreAllDifferentBeforeAnyComesAgain) {
  const Random random(1);
  const int64_t count = num_distinct_starters();
  EXPECT_GE(count, 1900);
  std::set<std::string> seen;
  for (int64_t i = 0; i < count; ++i) EXPECT_TRUE(seen.insert(starter(i, random)).second) << i;
}

TEST(StarterTopics, AreCleanBeginnings) {
  const Random random(2);
  for (int64_t i = 0; i < 4000; ++i) {
    const auto text = starter(i, random);
    EXPECT_EQ(text.find_first_of("{}"), std::string::npos) << text;
    EXPECT_FALSE(text.empty() || text.front() == ' ' || text.back() == ' ') << text;
  }
}

TEST(StarterTopics, DependOnTheSeedAndTheIndexAlone) {
  const Random random(3);
  const Random other(4);
  int same = 0;
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(starter(i, random), starter(i, Random(3)));
    same += starter(i, random) == starter(i, other) ? 1 : 0;
  }
  EXPECT_LT(same, 40);
}

using Verdict = QuestionFilter::Verdict;

TEST(QuestionFilter, KeepsDifferentQuestionsAndCountsTheRest) {
  QuestionFilter filter;
  EXPECT_EQ(filter.add("Explain how volcanoes erupt and why some are more dangerous."),
            Verdict::Kept);
  EXPECT_EQ(filter.add("Explain how vaccines work."), Verdict::Kept);
  EXPECT_EQ(filter.add(""), Verdict::Empty);
  EXPECT_EQ(filter.add("Hi there!"), Verdict::Empty);
  EXPECT_EQ(filter.add("为什么天空是蓝色的？"), Verdict::Kept);
  EXPECT_EQ(filter.add("explain HOW vaccines work?!"), Verdict::Duplicate);
  EXPECT_EQ(filter.add("Explain how volcanoes erupt and why some are most dangerous."),
            Verdict::Duplicate);
  EXPECT_EQ(filter.counts().kept, 3);
  EXPECT_EQ(filter.counts().empty, 2);
  EXPECT_EQ(filter.counts().degenerate, 0);
  EXPECT_EQ(filter.counts().duplicate, 2);
}

TEST(QuestionFilter, DropsLoopsMarkersAndBrokenCharacters) {
  QuestionFilter filter;
  EXPECT_EQ(filter.add("the cat sat the cat sat the cat sat the cat sat the cat sat"),
            Verdict::Degenerate);
  EXPECT_EQ(filter.add("What is gravity? <|im_start|>assistant"), Verdict::Degenerate);
  EXPECT_EQ(filter.add("What is gravity \uFFFD today"), Verdict::Degenerate);
  EXPECT_EQ(filter.add("What is gravity \xFF today"), Verdict::Degenerate);
  EXPECT_EQ(filter.add("What is the capital of France, and what is the capital of the country that "
                       "lies to the north of it?"),
            Verdict::Kept);
  EXPECT_EQ(filter.counts().degenerate, 4);
}

TEST(QuestionFilter, ComparesWithWhatWasKeptAlone) {
  // A dropped question must not push out others: A ~ B, B ~ C, but A and C differ.
  QuestionFilter filter;
  const std::string a = "one two three four five six seven eight nine ten";
  const std::string b = "two three four five six seven eight nine ten eleven";
  EXPECT_EQ(filter.add(a), Verdict::Kept);
  const auto second = filter.add(b);
  EXPECT_EQ(second, filter.add(b));  // dropped twice for the same reason
  EXPECT_EQ(filter.counts().kept, 1);
  EXPECT_EQ(filter.add("five six seven eight nine ten eleven twelve thirteen fourteen"),
            Verdict::Kept);
}

TEST(QuestionFilter, FindsNearlyAllPairsAboveTheThreshold) {
  QuestionFilter filter;
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    std::string text = "Question";
    for (int j = 0; j < 8; ++j) text += " word" + std::to_string((i * 7919 + j * 104729) % 100003);
    EXPECT_EQ(filter.add(text), Verdict::Kept) << text;
    found += filter.add(text + " please") == Verdict::Duplicate ? 1 : 0;
  }
  EXPECT_GE(found, 198);
}

}  // namespace

}  // namespace medusa
