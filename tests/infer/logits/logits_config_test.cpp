// The processors against changes computed from the whole text each time.
#include "infer/logits/logits_config.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/infer/logits/logits_cases.h"
#include "tests/reference/changed_logits.h"

namespace medusa {
namespace {

const std::vector<TokenId> kEnds{6};

std::vector<TokenId> random_tokens(size_t count, uint64_t seed) {
  std::vector<TokenId> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(static_cast<TokenId>(
        7 * Random(seed).uniform(RandomUse::Shuffle, static_cast<int64_t>(i))));
  return out;
}

std::vector<float> random_row(uint64_t seed) {
  std::vector<float> out;
  for (uint64_t i = 0; i < 7; ++i)
    out.push_back(static_cast<float>(8 * Random(seed).uniform(RandomUse::Init, 0, i) - 4));
  return out;
}

TEST(LogitsConfig, ProcessorsAgreeWithTheWholeTextBitByBit) {
  for (const fixtures::LogitsCase& each : fixtures::logits_cases()) {
    const auto factories = make_processors(each.config, kEnds);
    ASSERT_FALSE(factories.empty()) << each.name;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<TokenId> prompt = random_tokens(1 + seed % 5, seed);
      std::vector<std::unique_ptr<LogitsProcessor>> processors;
      for (const auto& make : factories) {
        processors.push_back(make());
        processors.back()->begin(prompt);
      }
      std::vector<TokenId> text;
      for (const TokenId token : random_tokens(40, seed + 100)) {
        for (const size_t depth : {0U, 3U, 1U}) {  // a row leaves nothing behind
          const std::vector<TokenId> path = random_tokens(depth, seed + 200 + text.size());
          std::vector<TokenId> all = text;
          all.insert(all.end(), path.begin(), path.end());
          std::vector<float> row = random_row(seed + text.size());
          const auto expected = reference::changed_logits(each.config, kEnds, prompt, all, row);
          for (const auto& processor : processors) processor->process(path, row);
          ASSERT_EQ(row, expected) << each.name << " after " << all.size();
        }
        for (const auto& processor : processors) processor->take(token);
        text.push_back(token);
      }
    }
  }
}

TEST(LogitsConfig, NothingAskedForIsNoProcessor) {
  EXPECT_TRUE(make_processors({}, kEnds).empty());
  LogitsConfig endless;
  endless.min_tokens = 5;
  EXPECT_TRUE(make_processors(endless, {}).empty()) << "nothing could end the text";
}

}  // namespace
}  // namespace medusa
