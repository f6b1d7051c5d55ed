#include "infer/joint_pruning.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <utility>

#include "base/random.h"
#include "infer/backbone_target.h"
#include "infer/factory.h"
#include "infer/host_decoder.h"
#include "infer/rules/greedy_rule.h"
#include "tests/backbone/tiny_model.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

using Text = std::vector<TokenId>;

/// A chain below token 0 with these probabilities; tokens count from 1.
CandidateTree chain(const std::vector<double>& below_root) {
  CandidateTree tree = root_only(0);
  tree.accept_probs = {1};
  for (const double accept_prob : below_root) {
    tree.tokens.push_back(tree.size());
    tree.parents.push_back(tree.size() - 2);
    tree.accept_probs.push_back(accept_prob);
  }
  tree.num_verify = tree.size();
  return tree;
}

/// Rows up to a tile's end cost what the first of it does.
StepCost tiles_of(int32_t rows, double per_tile) {
  StepCost cost;
  for (int32_t n = 0; n < 64; ++n)
    cost.relative.push_back(1 + per_tile * static_cast<double>(n / rows));
  return cost;
}

void prune(const JointPruning& pruning, std::vector<CandidateTree>& trees, int32_t other_rows = 0) {
  std::vector<CandidateTree*> all;
  for (CandidateTree& tree : trees) all.push_back(&tree);
  pruning.prune(all, other_rows);
}

TEST(JointPruning, ATileIsFilledByWhoeverGainsMost) {
  std::vector<CandidateTree> trees{chain({.9, .8, .7}), chain({.2, .1, .05}), chain({.85, .3, .1})};
  prune(JointPruning(tiles_of(8, 2)), trees);
  EXPECT_EQ(trees[0].tokens, (Text{0, 1, 2, 3}));
  EXPECT_EQ(trees[1].tokens, (Text{0})) << "no row of the tile was left for it";
  EXPECT_EQ(trees[2].tokens, (Text{0, 1, 2}));
  EXPECT_EQ(trees[2].parents, (std::vector<int32_t>{-1, 0, 1}));
  EXPECT_EQ(trees[2].accept_probs, (std::vector<double>{1, .85, .3}));
  EXPECT_EQ(trees[2].num_verify, 3);
}

TEST(JointPruning, RowsOfPromptsAreInTheTileToo) {
  std::vector<CandidateTree> trees{chain({.6, .5, .4})};
  prune(JointPruning(tiles_of(8, 2)), trees, 5);
  EXPECT_EQ(trees[0].size(), 3);
  trees = {chain({.6, .5, .4})};
  prune(JointPruning(tiles_of(8, 2)), trees, 7);
  EXPECT_EQ(trees[0].size(), 1) << "the prompt and the root fill it";
}

TEST(JointPruning, ATreeThatSaysNoProbabilitiesStaysAndItsRowsCount) {
  std::vector<CandidateTree> trees{chain({.9, .8, .7}), chain({.9, .9, .9, .9})};
  trees[1].accept_probs.clear();
  prune(JointPruning(tiles_of(8, 2)), trees);
  EXPECT_EQ(trees[1].size(), 5);
  EXPECT_EQ(trees[0].size(), 3);
}

TEST(JointPruning, NodesThatBringMoreThanTheNextTileCostsAreTaken) {
  std::vector<CandidateTree> trees(8, chain({.9}));
  prune(JointPruning(tiles_of(8, .5)), trees);  // eight tokens a plain pass: .5 of it are 4
  for (const CandidateTree& tree : trees) EXPECT_EQ(tree.size(), 2);
  trees.assign(8, chain({.4}));
  prune(JointPruning(tiles_of(8, .5)), trees);
  for (const CandidateTree& tree : trees) EXPECT_EQ(tree.size(), 1);
}

TEST(JointPruning, TakesFewerNodesWherePassesBringMore) {
  JointPruning pruning(tiles_of(8, .5));
  for (int i = 0; i < 300; ++i) pruning.count(8, 8, 16);  // twice what plain decoding does
  std::vector<CandidateTree> trees(8, chain({.9}));
  prune(pruning, trees);
  for (const CandidateTree& tree : trees) EXPECT_EQ(tree.size(), 1) << "7.2 tokens for 8";
}

/// Of all sets of nodes that leave trees, the best one's gain.
double best_gain(const std::vector<CandidateTree>& trees, const StepCost& cost) {
  std::vector<std::pair<size_t, size_t>> nodes;
  for (size_t t = 0; t < trees.size(); ++t)
    for (size_t i = 1; i < trees[t].tokens.size(); ++i) nodes.emplace_back(t, i);
  const auto num_trees = static_cast<int32_t>(trees.size());
  double best = 0;
  for (uint32_t set = 0; set < 1U << nodes.size(); ++set) {
    const auto holds = [&](size_t tree, int32_t node) {
      for (size_t n = 0; n < nodes.size(); ++n)
        if (nodes[n] == std::pair{tree, static_cast<size_t>(node)}) return (set >> n & 1) != 0;
      return true;  // a root
    };
    double tokens = 0;
    bool are_trees = true;
    for (size_t n = 0; n < nodes.size(); ++n) {
      if ((set >> n & 1) == 0) continue;
      const auto [tree, node] = nodes[n];
      tokens += trees[tree].accept_probs[node];
      are_trees = are_trees && holds(tree, trees[tree].parents[node]);
    }
    const double rows = cost(num_trees + std::popcount(set)) / cost(num_trees) - 1;
    if (are_trees) best = std::max(best, tokens - num_trees * rows);
  }
  return best;
}

TEST(JointPruning, IsAsGoodAsTryingAllTrees) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Random random(seed);
    int64_t drawn = 0;
    const auto next = [&] { return random.uniform(RandomUse::Init, drawn++); };
    StepCost cost{{1}};
    for (int n = 1; n < 16; ++n) cost.relative.push_back(cost.relative.back() + next() * next());
    std::vector<CandidateTree> trees;
    for (int t = 0; t < 3; ++t) {
      CandidateTree tree = chain({});
      for (int i = 1; i < 4; ++i) {
        tree.tokens.push_back(i);
        tree.parents.push_back(static_cast<int32_t>(next() * i));
        tree.accept_probs.push_back(next() *
                                    tree.accept_probs[static_cast<size_t>(tree.parents.back())]);
      }
      tree.num_verify = tree.size();
      trees.push_back(std::move(tree));
    }
    const double best = best_gain(trees, cost);
    prune(JointPruning(cost), trees);
    double tokens = 0;
    int32_t rows = 0;
    for (const CandidateTree& tree : trees) {
      rows += tree.size();
      for (size_t i = 1; i < tree.accept_probs.size(); ++i) tokens += tree.accept_probs[i];
    }
    EXPECT_NEAR(tokens - 3 * (cost(rows) / cost(3) - 1), best, 1e-9) << seed;
  }
}

/// Chains of right tokens, each as probable as it is told.
DrafterFactory chains(double accept_prob, std::vector<bool>& asked) {
  return [accept_prob, &asked] {
    return std::make_unique<fixtures::ToyDrafter>(
        [accept_prob, &asked](const DraftContext& c, const Random& random, CandidateTree& tree) {
          asked.push_back(c.pruned_jointly);
          const auto next = [&](std::span<const TokenId> context) {
            return fixtures::plain_choice(context, fixtures::kGreedy, random);
          };
          fixtures::add_chain(c, next, 3, 0, tree);
          if (!c.pruned_jointly) return;
          for (int32_t i = 0; i < tree.size(); ++i)
            tree.accept_probs.push_back(i == 0 ? 1 : accept_prob);
        });
  };
}

TEST(JointPruning, TheDecoderDealsRowsOutAndTheTextsStay) {
  fixtures::ToyTarget target(2);
  HostDecoder decoder(target, std::make_shared<GreedyRule>(), nullptr,
                      HostDecoderOptions{.cost = tiles_of(4, 3)});
  std::vector<Text> texts(2);
  std::vector<std::vector<bool>> asked(2);
  std::vector<std::vector<int32_t>> sizes(2);
  for (const size_t i : {0, 1}) {
    DecodeRequest request = fixtures::toy_request({1}, {12, 8, {}}, 1, texts[i]);
    request.make_drafter = chains(i == 0 ? .1 : .9, asked[i]);
    request.watch = [&sizes, i](const StepView& step) { sizes[i].push_back(step.tree.size()); };
    decoder.submit(std::move(request));
  }
  decoder.drain();
  const Text expected = fixtures::plain_text({1}, 12, fixtures::kGreedy, Random(1));
  EXPECT_EQ(texts, (std::vector<Text>{expected, expected}));
  // The pass has a tile of four rows: two roots and two nodes of the second sequence, which is
  // over after four steps. Then the first one is alone and weighs for itself.
  EXPECT_EQ(sizes[1], (std::vector<int32_t>{3, 3, 3, 3}));
  EXPECT_EQ(sizes[0], (std::vector<int32_t>{1, 1, 1, 1, 4, 4}));
  EXPECT_EQ(asked[0], (std::vector<bool>{true, true, true, true, false, false}));
}

TEST(JointPruning, TheDecoderOfSomeSettingsGoesByTheirCost) {
  Llama llama(tiny_weights(1, tiny_config(), at::kBFloat16));
  const StepCost cost = tiles_of(8, .5);
  for (const bool is_known : {true, false}) {
    BackboneTarget target(llama, 2, 320);
    InferConfig settings;
    settings.drafter = DrafterKind::PromptLookup;
    DraftParts parts;
    if (is_known) parts.cost = &cost;
    const auto decoder = make_decoder(settings, parts, target);
    int pruned = 0;
    for (int i = 0; i < 2; ++i) {
      DecodeRequest request{{1, 2, 3, 1, 2, 3, 1, 2}, {12, 8, {}}, Random(1), {}};
      request.emit = [](const EmittedToken&) { return true; };
      request.watch = [&](const StepView& step) {
        pruned += step.tree.accept_probs.empty() ? 0 : 1;
      };
      decoder->submit(std::move(request));
    }
    decoder->drain();
    EXPECT_EQ(pruned > 0, is_known);
  }
}

}  // namespace
}  // namespace medusa
