#include "data/starter_topics.h"

#include <gtest/gtest.h>

#include <set>

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

}  // namespace
}  // namespace medusa
