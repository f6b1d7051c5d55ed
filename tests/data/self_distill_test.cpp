#include "data/self_distill.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/interrupt.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/dataset_samples.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::files_of;
using fixtures::TempFolder;
namespace fs = std::filesystem;

constexpr int64_t kHidden = 2;  // H

std::vector<DistillPrompt> make_prompts(int64_t count) {
  std::vector<DistillPrompt> prompts;
  for (int64_t i = 0; i < count; ++i) {
    const auto length = static_cast<size_t>(1 + i % 5);
    prompts.push_back({fmt::format("q{}", i), std::vector<TokenId>(length)});
    for (size_t t = 0; t < length; ++t)
      prompts.back().tokens[t] = static_cast<TokenId>((31 * i + static_cast<int64_t>(t)) % 100);
  }
  return prompts;
}

/// What a model would answer: a pure function of the request.
GeneratedText answer(const GenerateRequest& request) {
  GeneratedText text;
  const auto length = static_cast<int64_t>(1 + request.random.uniform(RandomUse::Accept, 0) *
                                                   request.max_new_tokens);
  for (int64_t t = 0; t < length; ++t) {
    text.tokens.push_back(static_cast<TokenId>(request.random.uniform(RandomUse::Accept, t) * 100));
    for (int64_t h = 0; h < kHidden; ++h)
      text.hidden.push_back(static_cast<uint16_t>(request.random.bits(RandomUse::Draft, t)));
  }
  return text;
}

/// A batch of `slots` texts at a time; the later ones of a batch are finished first.
GenerateFunction batches_of(size_t slots) {
  return [slots](std::span<const GenerateRequest> requests,
                 const std::function<bool(size_t, GeneratedText)>& finished) {
    for (size_t begin = 0; begin < requests.size(); begin += slots)
      for (size_t i = std::min(begin + slots, requests.size()); i-- > begin;)
        if (!finished(i, answer(requests[i]))) return;
  };
}

constexpr DistillLimits kLimits = {.max_new_tokens = 6, .max_sequence = 20};

DatasetWriter open_writer(const fs::path& folder, int64_t count, int64_t limit = 0) {
  return {folder, fixtures::small_info(kHidden), count, 4, limit};
}

DistillReport distill(const fs::path& folder, int64_t count, const GenerateFunction& generate,
                      int64_t limit = 0, DistillLimits limits = kLimits) {
  DatasetWriter writer = open_writer(folder, count, limit);
  return self_distill(make_prompts(count), generate, limits, Random(11), writer);
}

TEST(SelfDistill, StoresPromptAndAnswerOfEachPrompt) {
  const TempFolder folder;
  const DistillReport report = distill(folder.path(), 10, batches_of(3));
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.answered, 10);
  EXPECT_EQ(report.too_long, 0);
  EXPECT_EQ(report.generated, report.answer_tokens);
  const DatasetReader dataset(folder.path());
  EXPECT_EQ(dataset.num_answer_tokens(), report.answer_tokens);
  const auto prompts = make_prompts(10);
  for (int64_t i = 0; i < 10; ++i) {
    const auto& prompt = prompts[static_cast<size_t>(i)];
    const auto tokens = dataset.tokens(i);
    EXPECT_EQ(dataset.prompt_id(i), prompt.id);
    EXPECT_EQ(dataset.answer_start(i), static_cast<int64_t>(prompt.tokens.size()));
    EXPECT_TRUE(std::equal(prompt.tokens.begin(), prompt.tokens.end(), tokens.begin()));
  }
}

TEST(SelfDistill, TheBatchDoesNotChangeTheFiles) {
  const TempFolder one, many;
  distill(one.path(), 23, batches_of(1));
  distill(many.path(), 23, batches_of(7));
  EXPECT_EQ(files_of(one.path()), files_of(many.path()));
}

TEST(SelfDistill, AnAnswerDependsOnSeedAndPromptOnly) {
  const std::vector<DistillPrompt> prompts = {{"a", {1, 2}}, {"b", {3}}, {"c", {1, 2}}};
  std::vector<uint64_t> seeds;
  const auto look = [&](std::span<const GenerateRequest> requests,
                        const std::function<bool(size_t, GeneratedText)>& finished) {
    for (size_t i = 0; i < requests.size(); ++i) {
      seeds.push_back(requests[i].random.seed());
      finished(i, answer(requests[i]));
    }
  };
  for (const uint64_t seed : {1, 2}) {
    const TempFolder folder;
    DatasetWriter writer = open_writer(folder.path(), 3);
    self_distill(prompts, look, kLimits, Random(seed), writer);
  }
  ASSERT_EQ(seeds.size(), 6u);
  EXPECT_EQ(seeds[0], seeds[2]);  // the same prompt at another place
  EXPECT_NE(seeds[0], seeds[1]);
  EXPECT_NE(seeds[0], seeds[3]);
}

TEST(SelfDistill, SkipsAndCountsPromptsThatDoNotFit) {
  const TempFolder folder;
  int32_t longest = 0;
  const auto look = [&](std::span<const GenerateRequest> requests,
                        const std::function<bool(size_t, GeneratedText)>& finished) {
    for (const auto& each : requests) {
      EXPECT_LE(each.prompt.size() + static_cast<size_t>(each.max_new_tokens), 4u);
      longest = std::max(longest, each.max_new_tokens);
    }
    batches_of(2)(requests, finished);
  };
  const auto report = distill(folder.path(), 10, look, 0, {.max_new_tokens = 6, .max_sequence = 4});
  EXPECT_EQ(report.too_long, 4);  // those of 4 and of 5 tokens
  EXPECT_EQ(report.answered, 6);
  EXPECT_EQ(longest, 3);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(DatasetReader(folder.path()).size(), 6);
}

TEST(SelfDistill, NoPromptThatFitsIsAnError) {
  const TempFolder folder;
  EXPECT_EQ(error_text([&] {
              distill(folder.path(), 10, batches_of(2), 0,
                      {.max_new_tokens = 6, .max_sequence = 1});
            }),
            "prompts: none of the 10 leaves room for an answer in a sequence of 1 tokens; use "
            "shorter prompts or allow longer sequences");
}

TEST(SelfDistill, AsksOnlyForWhatIsNotFinalized) {
  const TempFolder folder;
  distill(folder.path(), 12, batches_of(3));
  const auto unbroken = files_of(folder.path());
  fs::remove(folder / "shard-00001.h5");
  size_t asked = 0;
  const auto look = [&](std::span<const GenerateRequest> requests,
                        const std::function<bool(size_t, GeneratedText)>& finished) {
    asked = requests.size();
    batches_of(3)(requests, finished);
  };
  const DistillReport report = distill(folder.path(), 12, look);
  EXPECT_EQ(asked, 4u);
  EXPECT_EQ(report.answered, 12);
  EXPECT_LT(report.generated, report.answer_tokens);
  EXPECT_EQ(files_of(folder.path()), unbroken);

  const auto never = [](std::span<const GenerateRequest>,
                        const std::function<bool(size_t, GeneratedText)>&) { FAIL(); };
  EXPECT_TRUE(distill(folder.path(), 12, never).complete);
}

TEST(SelfDistill, TheLimitEndsItAtTheSameShardInEveryBatchAndAfterEveryBreak) {
  constexpr int64_t kLimit = 30;  // answer tokens
  const TempFolder one;
  const DistillReport report = distill(one.path(), 60, batches_of(1), kLimit);
  EXPECT_TRUE(report.complete);
  EXPECT_GE(report.answer_tokens, kLimit);
  const auto expected = files_of(one.path());
  EXPECT_LT(expected.size(), 15u);
  for (const size_t slots : {3, 9, 40}) {
    const TempFolder other;
    int left = 9;
    const auto break_off = [&](std::span<const GenerateRequest> requests,
                               const std::function<bool(size_t, GeneratedText)>& finished) {
      batches_of(slots)(requests, [&](size_t i, GeneratedText text) {
        if (left-- == 0) throw std::runtime_error("the power fails");
        return finished(i, std::move(text));
      });
    };
    EXPECT_THROW(distill(other.path(), 60, break_off, kLimit), std::runtime_error);
    distill(other.path(), 60, batches_of(slots), kLimit);
    EXPECT_EQ(files_of(other.path()), expected) << slots;
  }
}

// The signal comes for good, so this runs in a process of its own.
TEST(SelfDistill, CtrlCEndsItCleanlyAndKeepsWhatIsFinalized) {
  const TempFolder folder, unbroken;
  distill(unbroken.path(), 12, batches_of(1));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    install_interrupt_handler();
    int count = 0;
    const auto interrupted_run = [&](std::span<const GenerateRequest> requests,
                                     const std::function<bool(size_t, GeneratedText)>& finished) {
      batches_of(1)(requests, [&](size_t i, GeneratedText text) {
        if (++count == 6) std::raise(SIGINT);
        return finished(i, std::move(text));
      });
    };
    const DistillReport report = distill(folder.path(), 12, interrupted_run);
    ::_exit(!report.complete && report.answered == 4 && count == 6 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files_of(folder.path()).size(), 1u);
  EXPECT_TRUE(distill(folder.path(), 12, batches_of(2)).complete);
  EXPECT_EQ(files_of(folder.path()), files_of(unbroken.path()));
}

TEST(SelfDistill, ThePromptsFingerprintSeesIdsTokensAndOrder) {
  const std::string first = fingerprint_prompts(std::vector<DistillPrompt>{{"a", {1}}, {"b", {2}}});
  for (const auto& other : {std::vector<DistillPrompt>{{"b", {2}}, {"a", {1}}},
                            {{"a", {1}}, {"c", {2}}},
                            {{"a", {1}}, {"b", {3}}},
                            {{"a", {1}}}})
    EXPECT_NE(fingerprint_prompts(other), first);
}

}  // namespace
}  // namespace medusa
