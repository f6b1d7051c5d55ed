#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tools/bench/rounds.h"

namespace medusa {
namespace {

TEST(Rounds, EveryMethodGoesFirstAsOftenAsTheOthers) {
  EXPECT_EQ(method_order(3, 0, 0), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(method_order(3, 1, 0), (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(method_order(3, 0, 2), (std::vector<size_t>{2, 0, 1}));
  std::vector<int> first(4);
  for (size_t question = 0; question < 8; ++question) ++first[method_order(4, question, 1)[0]];
  EXPECT_EQ(first, (std::vector<int>{2, 2, 2, 2}));
}

TEST(Rounds, AllMethodsRunInEveryRound) {
  std::vector<std::pair<size_t, size_t>> played;  // method, question
  const auto run_method = [&](size_t method, size_t question) {
    played.emplace_back(method, question);
    Answer answer;
    answer.text = std::to_string(method) + "/" + std::to_string(question);
    return std::vector<Answer>{answer};
  };
  std::vector<std::pair<size_t, int64_t>> rounds;
  const bool complete = run_rounds({"test", 2, 2, 2}, run_method, [&](const Round& round) {
    rounds.emplace_back(round.question, round.repeat);
    EXPECT_TRUE(round.whole);
    ASSERT_EQ(round.answers.size(), 2u);
    for (size_t method = 0; method < 2; ++method)
      EXPECT_EQ(round.answers[method].at(0).text,
                std::to_string(method) + "/" + std::to_string(round.question));
  });
  EXPECT_TRUE(complete);
  EXPECT_EQ(rounds, (std::vector<std::pair<size_t, int64_t>>{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(played, (std::vector<std::pair<size_t, size_t>>{
                        {0, 0}, {1, 0}, {1, 1}, {0, 1}, {1, 0}, {0, 0}, {0, 1}, {1, 1}}));
}

TEST(Rounds, EveryMethodWarmsUpOnce) {
  std::vector<size_t> warmed;
  warm_up("test", 3, [&](size_t method) { warmed.push_back(method); });
  EXPECT_EQ(warmed, (std::vector<size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace medusa
