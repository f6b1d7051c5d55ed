// The promises that make a tree verify what plain decoding emits, on a small random Llama.
#include "infer/backbone_target.h"

#include <gtest/gtest.h>

#include <numeric>

#include "heads/heads_runner.h"
#include "infer/decoder.h"
#include "infer/drafter.h"
#include "infer/drafters/medusa_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "tests/infer/every_target.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

using fixtures::every_setup;
using fixtures::kRows;
using fixtures::some_trees;

class BackboneTargets : public fixtures::EveryTarget {};

INSTANTIATE_TEST_SUITE_P(Types, BackboneTargets, testing::ValuesIn(every_setup()),
                         [](const auto& each) { return each.param.name; });

TokenId random_token(uint64_t seed, int64_t position) {
  return static_cast<TokenId>(130 * Random(seed).uniform(RandomUse::Init, position));
}

/// A tree in which any earlier node may be the parent, the last ones more often: deep and wide.
CandidateTree random_tree(uint64_t seed, int32_t size) {
  CandidateTree tree = root_only(random_token(seed, 1000));
  while (tree.size() < size) {
    const double u = Random(seed).uniform(RandomUse::Draft, tree.size());
    tree.parents.push_back(static_cast<int32_t>((1 - u * u) * tree.size()));
    tree.tokens.push_back(random_token(seed, 1000 + tree.size()));
  }
  tree.num_verify = size;
  return tree;
}

/// Nodes from the root to a node.
std::vector<int32_t> path_to(const CandidateTree& tree, int32_t node) {
  std::vector<int32_t> path;
  for (; node >= 0; node = tree.parents[static_cast<size_t>(node)]) path.insert(path.begin(), node);
  return path;
}

CandidateTree chain_of(const CandidateTree& tree, const std::vector<int32_t>& path) {
  CandidateTree chain;
  for (const int32_t node : path) {
    chain.parents.push_back(chain.size() - 1);
    chain.tokens.push_back(tree.tokens[static_cast<size_t>(node)]);
  }
  chain.num_verify = chain.size();
  return chain;
}

/// Copies, as the views go with the next pass.
TargetOutput run(BackboneTarget& target, int32_t slot, const CandidateTree& tree) {
  const SlotTree each{slot, &tree};
  const TargetOutput out = target.forward({&each, 1}).at(0);
  return {out.logits.clone(), out.hidden.clone()};
}

TEST_P(BackboneTargets, ANodesLogitsAreThoseOfItsPathRunAlone) {
  for (const int64_t prompt : {1, 37}) {
    BackboneTarget target(llama_, 1, kRows);
    const int32_t slot = target.open();
    target.prefill(slot, random_tokens(3, prompt));
    for (const int32_t size : {1, 2, 7, 16, 33, 64}) {
      const CandidateTree tree = random_tree(static_cast<uint64_t>(size), size);
      const TargetOutput for_batch = run(target, slot, tree);
      EXPECT_EQ(for_batch.logits.sizes(), (at::IntArrayRef{size, 130}));
      EXPECT_EQ(for_batch.logits.scalar_type(), at::kFloat);
      EXPECT_EQ(for_batch.hidden.sizes(), (at::IntArrayRef{size, 64}));
      for (int32_t node = 0; node < size; ++node) {
        const TargetOutput alone = run(target, slot, chain_of(tree, path_to(tree, node)));
        const std::string what = "node " + std::to_string(node) + " of " + std::to_string(size);
        expect_same(for_batch.logits[node], alone.logits[-1], what);
        expect_same(for_batch.hidden[node], alone.hidden[-1], what);
      }
    }
  }
}

TEST_P(BackboneTargets, AChainsLogitsAreThoseOfItsTokensOneByOne) {
  BackboneTarget target(llama_, 2, kRows);
  const int32_t for_batch = target.open(), stepwise = target.open();
  for (const int32_t slot : {for_batch, stepwise}) target.prefill(slot, random_tokens(3, 20));
  CandidateTree tree = random_tree(5, 20);
  for (int32_t i = 0; i < tree.size(); ++i) tree.parents[static_cast<size_t>(i)] = i - 1;
  const TargetOutput whole = run(target, for_batch, tree);
  const std::vector<int32_t> root{0};
  for (int32_t i = 0; i < tree.size(); ++i) {
    const TargetOutput step = run(target, stepwise, root_only(tree.tokens[static_cast<size_t>(i)]));
    target.commit(stepwise, root);
    expect_same(whole.logits[i], step.logits[0], "token " + std::to_string(i));
  }
}

TEST_P(BackboneTargets, AfterCommitTheCacheIsAFreshPrefill) {
  BackboneTarget target(llama_, 2, kRows);
  const int32_t grown = target.open();
  std::vector<TokenId> text = random_tokens(4, 25);
  target.prefill(grown, text);
  for (uint64_t step = 0; step < 8; ++step) {
    const CandidateTree tree = random_tree(100 + step, 24);
    run(target, grown, tree);
    const std::vector<int32_t> path = path_to(tree, 23 - static_cast<int32_t>(step));
    target.commit(grown, path);
    for (const int32_t node : path) text.push_back(tree.tokens[static_cast<size_t>(node)]);
    EXPECT_EQ(target.cache().length(grown), static_cast<int64_t>(text.size()));

    const int32_t fresh = target.open();
    target.prefill(fresh, text);
    const CandidateTree next = random_tree(200 + step, 5);
    expect_same(run(target, grown, next).logits, run(target, fresh, next).logits,
                "after step " + std::to_string(step));
    target.close(fresh);
  }
}

TEST_P(BackboneTargets, APromptThatBeginsLikeAnotherGivesTheSameRowsAsAlone) {
  std::vector<TokenId> first = random_tokens(21, 60), second = random_tokens(22, 60);
  std::copy(first.begin(), first.begin() + 37, second.begin());  // no multiple of 16
  BackboneTarget alone(llama_, 1, kRows), for_batch(llama_, 3, kRows);
  const int32_t slot = alone.open();
  const at::Tensor expected = alone.prefill(slot, second);
  for_batch.prefill(for_batch.open(), first);
  const int32_t sharing = for_batch.open();
  expect_same(for_batch.prefill(sharing, second), expected, "state of the last token");
  expect_same(for_batch.prefill(for_batch.open(), second), expected, "the same prompt once more");
  EXPECT_EQ(for_batch.cache().length(sharing), 60);

  const CandidateTree tree = random_tree(23, 9);
  const SlotTree there{slot, &tree}, here{sharing, &tree};
  const at::Tensor logits = alone.forward({&there, 1}).front().logits.clone();
  expect_same(for_batch.forward({&here, 1}).front().logits, logits, "logits of the next step");
}

TEST_P(BackboneTargets, AFailedStepsRowsAreForgotten) {
  BackboneTarget target(llama_, 1, kRows);
  const int32_t slot = target.open();
  target.prefill(slot, random_tokens(4, 25));
  const CandidateTree tree = random_tree(7, 9);
  const at::Tensor expected = run(target, slot, tree).logits;
  run(target, slot, random_tree(8, 40));  // no commit
  EXPECT_TRUE(at::equal(run(target, slot, tree).logits, expected));
}

TEST_P(BackboneTargets, ATreesLogitsDoNotDependOnTheSequencesBesideIt) {
  BackboneTarget target(llama_, 8, kRows);
  std::vector<CandidateTree> trees;
  std::vector<SlotTree> batch;
  const std::vector<int32_t> sizes{16, 1, 33, 7, 64, 2, 5, 12};
  for (size_t i = 0; i < sizes.size(); ++i) trees.push_back(random_tree(50 + i, sizes[i]));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int32_t slot = target.open();
    target.prefill(slot, random_tokens(i, 3 + 11 * static_cast<int64_t>(i)));
    batch.push_back({slot, &trees[i]});
  }
  std::vector<at::Tensor> for_batch;
  for (const TargetOutput& out : target.forward(batch)) for_batch.push_back(out.logits.clone());
  for (size_t i = 0; i < sizes.size(); ++i)
    expect_same(for_batch[i], run(target, batch[i].slot, trees[i]).logits,
                "sequence " + std::to_string(i));
}

std::vector<TokenId> decode_text(TargetModel& target, const AcceptanceRule& rule,
                                 const DrafterFactory& drafter, const std::vector<TokenId>& prompt,
                                 uint64_t seed, int64_t* accepted = nullptr) {
  std::vector<TokenId> text;
  DecodeRequest request{prompt, {24, 64, {}}, Random(seed), {}};
  request.emit = [&](const EmittedToken& token) {
    text.push_back(token.id);
    return true;
  };
  const DecodeResult result = decode_one(target, rule, drafter, request);
  if (accepted != nullptr) *accepted += result.stats.accepted;
  return text;
}

DrafterFactory none() {
  return [] { return std::make_unique<NoneDrafter>(); };
}

TEST_P(BackboneTargets, MedusaGivesThePlainGreedyText) {
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  BackboneTarget target(llama_, 1, kRows);
  int64_t accepted = 0;
  for (const ChoiceTree& tree : some_trees()) {
    const TreeShape shape = tree.shape();
    const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const auto prompt = random_tokens(seed, 1 + 10 * static_cast<int64_t>(seed));
      EXPECT_EQ(decode_text(target, GreedyRule(), medusa, prompt, 1, &accepted),
                decode_text(target, GreedyRule(), none(), prompt, 1))
          << tree.paths.size() << " paths, prompt " << seed;
    }
  }
  EXPECT_GT(accepted, 5);
}

TEST_P(BackboneTargets, MedusaGivesThePlainSampledTextOfTheSeed) {
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  BackboneTarget target(llama_, 1, kRows);
  const MatchRule rule({.temperature = 0.7});
  const auto prompt = random_tokens(1, 12);
  int64_t accepted = 0;
  for (const ChoiceTree& tree : some_trees()) {
    const TreeShape shape = tree.shape();
    const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
    for (uint64_t seed = 0; seed < 5; ++seed)
      EXPECT_EQ(decode_text(target, rule, medusa, prompt, seed, &accepted),
                decode_text(target, rule, none(), prompt, seed))
          << tree.paths.size() << " paths, seed " << seed;
  }
  EXPECT_GT(accepted, 10);
}

TEST_P(BackboneTargets, BatchesGiveTheTextsDecodedAlone) {
  constexpr size_t kRequests = 9;
  HeadsRunner runner(fixtures::arbitrary_heads(weights_), weights_, 40, llama_.execution());
  const TreeShape shape = some_trees().back().shape();
  const auto medusa = [&] { return std::make_unique<MedusaDrafter>(runner, shape); };
  const MatchRule rule({.temperature = 0.7});
  std::vector<std::vector<TokenId>> alone;
  BackboneTarget single(llama_, 1, kRows);
  for (size_t i = 0; i < kRequests; ++i)
    alone.push_back(decode_text(single, rule, medusa,
                                random_tokens(i, 1 + static_cast<int64_t>(5 * i)), 60 + i));
  for (const int32_t slots : {1, 3, 8}) {
    BackboneTarget target(llama_, slots, kRows);
    std::vector<std::vector<TokenId>> texts(kRequests);
    size_t taken = 0;
    const auto next = [&]() -> std::optional<DecodeRequest> {
      if (taken == kRequests) return std::nullopt;
      const size_t i = taken++;
      return DecodeRequest{random_tokens(i, 1 + static_cast<int64_t>(5 * i)),
                           {24, 64, {}},
                           Random(60 + i),
                           [&texts, i](const EmittedToken& token) {
                             texts[i].push_back(token.id);
                             return true;
                           }};
    };
    decode(target, rule, medusa, next, [](size_t, const DecodeStats&) { return true; });
    EXPECT_EQ(texts, alone) << slots << " slots";
  }
}

TEST_P(BackboneTargets, TheContextEndsTheTextWithAFullCache) {
  // 45 rows of a cache whose memory is rounded up to 64: the text ends at 45 all the same.
  BackboneTarget target(llama_, 1, 45);
  std::vector<TokenId> text;
  DecodeRequest request{random_tokens(2, 30), {100, 64, {}}, Random(1), {}};
  request.emit = [&](const EmittedToken& token) {
    EXPECT_EQ(token.output->logits[token.row].argmax().item<int64_t>(), token.id);
    text.push_back(token.id);
    return true;
  };
  const DecodeResult result = decode_one(target, GreedyRule(), none(), request);
  EXPECT_EQ(result.stats.finish, FinishReason::Context);
  EXPECT_EQ(text.size(), 16U);
  EXPECT_THROW(BackboneTarget(llama_, 1, 1025), std::logic_error) << "beyond the model's context";
}

TEST_P(BackboneTargets, RewindRepeatsAStepBitForBit) {
  BackboneTarget target(llama_, 1, kRows);
  const int32_t slot = target.open();
  target.prefill(slot, random_tokens(4, 25));
  const CandidateTree tree = random_tree(7, 9);
  const at::Tensor first = run(target, slot, tree).logits;
  target.commit(slot, path_to(tree, 8));
  target.rewind(slot, 25);
  EXPECT_TRUE(at::equal(run(target, slot, tree).logits, first));
}

/// In one pass with others, who ask for other layers or none.
TEST_P(BackboneTargets, EveryoneGetsTheFeaturesThatHeAskedFor) {
  BackboneTarget target(llama_, 4, kRows);
  const std::vector<TokenId> prompt = random_tokens(7, 30), chunk = random_tokens(8, 11);
  std::vector<int32_t> slots;
  for (int i = 0; i < 3; ++i) {
    slots.push_back(target.open());
    target.prefill(slots.back(), prompt);
  }
  const CandidateTree tree{{5, 6, 7, 8}, {-1, 0, 0, 2}, 4, {}};
  const std::vector<int32_t> first{0, 2}, second{1};
  const std::vector<SlotTree> trees{
      {slots[0], &tree, first}, {slots[1], &tree}, {slots[2], &tree, second}};
  const std::vector<PromptChunk> chunks{{target.open(), chunk, false, second}};
  const PassOutput output = target.forward(trees, chunks);
  EXPECT_FALSE(output.trees[1].features.defined());

  const auto alone = [&](std::span<const TokenId> before, std::span<const TokenId> tokens,
                         std::span<const int32_t> parents, std::vector<int32_t> layers) {
    KvCache cache = llama_.make_cache(1, kRows);
    const int32_t slot = cache.open();
    if (!before.empty()) llama_.prefill(slot, before, cache);
    Features features{std::move(layers), std::vector<int32_t>(tokens.size())};
    std::iota(features.rows.begin(), features.rows.end(), 0);
    const Segment segment{slot, tokens, parents};
    llama_.forward({&segment, 1}, cache, {}, &features);
    return features.values;
  };
  const auto same = [&](const at::Tensor& a, const at::Tensor& b) {
    return llama_.rows_are_independent() ? at::equal(a, b) : at::allclose(a, b, 0.02, 0.02);
  };
  EXPECT_TRUE(same(output.trees[0].features, alone(prompt, tree.tokens, tree.parents, {0, 2})));
  EXPECT_TRUE(same(output.trees[2].features, alone(prompt, tree.tokens, tree.parents, {1})));
  EXPECT_TRUE(same(output.prompt_features[0], alone({}, chunk, {}, {1})));
}

}  // namespace
}  // namespace medusa
