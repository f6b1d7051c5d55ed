// A pool of blocks that one request needs all of: whatever ends the request, the next one gets
// them.
#include <gtest/gtest.h>

#include <memory>

#include "infer/backbone_target.h"
#include "infer/drafter.h"
#include "infer/host_decoder.h"
#include "infer/rules/greedy_rule.h"
#include "tests/backbone/tiny_model.h"

namespace medusa {
namespace {

enum class Ending { CancelPrefill, CancelDecode, Drafter, Pass, Callback, Stop };

/// Proposes nothing, or fails in its second step: by itself, or with a token that no model has.
class FailingDrafter : public NoneDrafter {
 public:
  explicit FailingDrafter(Ending ending) : ending_(ending) {}

  CandidateTree propose(const DraftContext& context, const Random& random) override {
    CandidateTree tree = NoneDrafter::propose(context, random);
    if (step_++ == 0) return tree;
    if (ending_ == Ending::Drafter) throw std::runtime_error("the drafter failed");
    for (int i = 0; i < 60; ++i) {
      tree.tokens.push_back(1 << 20);
      tree.parents.push_back(0);
    }
    tree.num_verify = tree.size();
    return tree;
  }

 private:
  Ending ending_;
  int step_ = 0;
};

class CacheBlocks : public testing::TestWithParam<Ending> {
 protected:
  static constexpr int64_t kRows = 256;

  DecodeRequest request(uint64_t seed, std::vector<TokenId>& out) const {
    return {
        random_tokens(seed, 170), {30, 64, {}}, Random(seed), [&out](const EmittedToken& token) {
          out.push_back(token.id);
          return true;
        }};
  }

  Llama llama_{tiny_weights(1, tiny_config(), at::kBFloat16)};
};

INSTANTIATE_TEST_SUITE_P(Endings, CacheBlocks,
                         testing::Values(Ending::CancelPrefill, Ending::CancelDecode,
                                         Ending::Drafter, Ending::Pass, Ending::Callback,
                                         Ending::Stop));

TEST_P(CacheBlocks, WhateverEndsASequenceGivesAllItsBlocksToTheNext) {
  const Ending ending = GetParam();
  BackboneTarget target(llama_, 4, kRows, llama_.cache_bytes(kRows));  // one sequence's
  const auto plain = [] { return std::make_unique<NoneDrafter>(); };
  HostDecoder decoder(target, std::make_shared<GreedyRule>(), plain);
  ASSERT_EQ(target.cache_use().blocks_total, 8);

  std::vector<TokenId> first_text, second_text;
  DecodeRequest first = request(1, first_text);
  if (ending == Ending::Drafter || ending == Ending::Pass)
    first.make_drafter = [ending] { return std::make_unique<FailingDrafter>(ending); };
  if (ending == Ending::Callback)
    first.emit = [](const EmittedToken&) -> bool { throw std::runtime_error("emit() failed"); };
  if (ending == Ending::Stop) first.emit = [](const EmittedToken&) { return false; };
  const RequestId id = decoder.submit(std::move(first));
  decoder.submit(request(2, second_text));  // it needs the same blocks, and waits

  decoder.step();
  EXPECT_EQ(target.cache_use().blocks_used, 4) << "128 rows of its prompt";
  EXPECT_EQ(decoder.num_running(), 1);
  EXPECT_EQ(decoder.num_waiting(), 1);
  if (ending == Ending::CancelDecode)
    for (int i = 0; i < 5; ++i) decoder.step();
  if (ending == Ending::CancelPrefill || ending == Ending::CancelDecode) {
    ASSERT_TRUE(decoder.cancel(id));
    EXPECT_EQ(target.cache_use().blocks_used, 0);
  }
  const size_t by_itself =
      ending == Ending::CancelPrefill || ending == Ending::CancelDecode ? 0 : 1;
  size_t ended = 0;
  for (int i = 0; i < 100 && !decoder.idle(); ++i) ended += decoder.step().size();
  EXPECT_EQ(ended, by_itself + 1);
  EXPECT_EQ(target.cache_use().blocks_used, 0);

  BackboneTarget fresh(llama_, 1, kRows);
  std::vector<TokenId> alone;
  decode_one(fresh, GreedyRule(), plain, request(2, alone));
  EXPECT_EQ(second_text, alone);
  EXPECT_EQ(second_text.size(), 30U);
}

}  // namespace
}  // namespace medusa
