#include "infer/drafters/prefix_drafter.h"

#include <gtest/gtest.h>

#include "infer/drafters/adaptive_medusa_drafter.h"
#include "infer/drafters/merge_drafter.h"
#include "infer/drafters/research/specinfer_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "tests/infer/toy_drafters.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

using fixtures::kToyVocab;

/// What the inner drafter was shown: how long the text was, and the state.
using Shown = std::vector<std::pair<size_t, at::Tensor>>;

/// The toy's own continuation, right for `right` tokens and then wrong.
class Recorder : public Drafter {
 public:
  Recorder(Shown& shown, int32_t right) : shown_(shown), right_(right) {}
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    // Where nothing can be emitted but the target's own token, nobody asks heads.
    if (context.hidden.defined() && context.max_depth > 0)
      shown_.emplace_back(context.tokens.size(), context.hidden.clone());
    CandidateTree tree = root_only(context.tokens.back());
    std::vector<TokenId> text(context.tokens.begin(), context.tokens.end());
    const int32_t length = std::min({right_ + 2, context.max_depth, context.max_nodes - 1});
    for (int32_t i = 0; i < length; ++i) {
      const TokenId next = fixtures::plain_choice(text, fixtures::kGreedy, Random(1));
      text.push_back(next);
      fixtures::add_node(tree, i, i < right_ ? next : (next + 1) % static_cast<TokenId>(kToyVocab));
    }
    tree.num_verify = tree.size();
    tree.confidences.assign(tree.tokens.size(), 0.5F);
    return tree;
  }

 private:
  Shown& shown_;
  int32_t right_;
};

class PrefixDrafterTest : public testing::Test {
 protected:
  /// The layer's states at every position of the answer, in one go.
  at::Tensor states_along(const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer) {
    std::vector<TokenId> text = prompt;
    std::vector<at::Tensor> hidden;
    for (const TokenId token : answer) {
      hidden.push_back(at::tensor(fixtures::toy_state(text)));
      text.push_back(token);
    }
    return PrefixText(model_).extend(at::stack(hidden), answer);
  }

  /// Each state that was shown is the layer's at the token before the root.
  void expect_states_of(const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer,
                        const Shown& shown) {
    const at::Tensor expected = states_along(prompt, answer);
    for (const auto& [length, state] : shown) {
      const auto position = static_cast<int64_t>(length - prompt.size()) - 1;
      if (position < 0) continue;  // inside the prompt
      EXPECT_TRUE(at::allclose(state, expected[position], 1e-4, 1e-4)) << position;
    }
  }

  const Weights weights_ = fixtures::toy_weights();
  const MedusaHeads heads_ = fixtures::arbitrary_heads(weights_, 3, HeadInput::Prefix);
  PrefixModel model_{*heads_.prefix, weights_};
};

TEST_F(PrefixDrafterTest, ShowsTheStatesOfTheAnswerSoFarAtEveryStep) {
  const std::vector<std::vector<TokenId>> prompts{{1, 2, 3}, {4}};
  for (const auto& prompt : prompts)
    for (const int32_t right : {0, 1, 3}) {
      SCOPED_TRACE(right);
      Shown shown;
      const fixtures::Decoded run =
          fixtures::decode_toy(GreedyRule(),
                               [&] {
                                 return std::make_unique<PrefixDrafter>(
                                     std::make_unique<Recorder>(shown, right), model_);
                               },
                               prompt, {60, 64, {}});
      EXPECT_GE(static_cast<int32_t>(shown.size()), 60 / (right + 2));
      expect_states_of(prompt, run.text, shown);
      if (prompt.size() == 1) continue;
      // The first state is inside the prompt: looked at as a first position, and not kept.
      const at::Tensor first =
          at::tensor(fixtures::toy_state(std::vector<TokenId>{1, 2})).unsqueeze(0);
      EXPECT_TRUE(at::allclose(
          shown[0].second, PrefixText(model_).peek(first, std::vector<TokenId>{3})[0], 1e-4, 1e-4));
    }
}

/// Hands its steps on, but asks for a proposal in every third alone.
class Seldom : public Drafter {
 public:
  explicit Seldom(std::unique_ptr<Drafter> inner) : inner_(std::move(inner)) {}
  CandidateTree propose(const DraftContext& context, const Random& random) override {
    return ++steps_ % 3 == 0 ? inner_->propose(context, random) : root_only(context.tokens.back());
  }
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override {
    inner_->observe(tree, output, accepted);
  }

 private:
  std::unique_ptr<Drafter> inner_;
  int steps_ = 0;
};

TEST_F(PrefixDrafterTest, CatchesUpAfterStepsInWhichNobodyAsked) {
  Shown shown;
  const fixtures::Decoded run =
      fixtures::decode_toy(GreedyRule(),
                           [&] {
                             return std::make_unique<Seldom>(std::make_unique<PrefixDrafter>(
                                 std::make_unique<Recorder>(shown, 2), model_));
                           },
                           {1, 2, 3}, {60, 64, {}});
  EXPECT_GE(shown.size(), 5U);
  expect_states_of({1, 2, 3}, run.text, shown);
}

TEST_F(PrefixDrafterTest, SeesTheStatesOfAMergedTreeWhoeverProposedThem) {
  Shown shown, others;
  const fixtures::Decoded run = fixtures::decode_toy(
      GreedyRule(),
      [&] {
        std::vector<Proposer> members;
        members.push_back(
            {DrafterKind::None, std::make_unique<Recorder>(others, 3)});  // its nodes come first
        members.push_back({DrafterKind::None, std::make_unique<PrefixDrafter>(
                                                  std::make_unique<Recorder>(shown, 1), model_)});
        return std::make_unique<MergeDrafter>(std::move(members), 64, StepCost{});
      },
      {1, 2, 3}, {60, 64, {}});
  EXPECT_LT(run.stats.steps, 30) << "longer runs than the second member proposes";
  expect_states_of({1, 2, 3}, run.text, shown);
}

TEST_F(PrefixDrafterTest, SeesTheStatesOfADraftModelsTree) {
  Shown shown;
  fixtures::ToyDraft draft(0.3F);
  const fixtures::Decoded run = fixtures::decode_toy(
      GreedyRule(),
      [&] {
        std::vector<std::unique_ptr<Drafter>> others;
        others.push_back(
            std::make_unique<PrefixDrafter>(std::make_unique<Recorder>(shown, 1), model_));
        return std::make_unique<SpecinferDrafter>(SpecinferConfig{}, draft.open(),
                                                  DraftChoice{DraftMode::Best, fixtures::kGreedy},
                                                  std::move(others));
      },
      {1, 2, 3}, {60, 64, {}});
  EXPECT_LT(run.stats.steps, 30) << "longer runs than the other member proposes";
  EXPECT_GE(shown.size(), 10U);
  expect_states_of({1, 2, 3}, run.text, shown);
}

TEST_F(PrefixDrafterTest, SeesTheStatesOfATreeThatAdapts) {
  Shown shown;
  const TreeShape shape =
      make_choice_tree({{0}, {0, 0}, {0, 0, 0}, {0, 0, 0, 0}}, 1, "chain").shape();
  // A row costs so much that on a text of misses the heads are not run in most steps.
  const StepCost cost{{1, 1.4, 1.8, 2.2, 2.6}, 0.05};
  for (const int32_t right : {0, 2}) {
    shown.clear();
    const fixtures::Decoded run = fixtures::decode_toy(
        GreedyRule(),
        [&] {
          return std::make_unique<AdaptiveMedusaDrafter>(
              std::make_unique<PrefixDrafter>(std::make_unique<Recorder>(shown, right), model_),
              shape, cost);
        },
        {1, 2, 3}, {60, 64, {}});
    EXPECT_GE(shown.size(), 5U);
    if (right == 0) {
      EXPECT_LT(static_cast<int64_t>(shown.size()), run.stats.steps / 2);
    }
    expect_states_of({1, 2, 3}, run.text, shown);
  }
}

TEST(BehindPrefix, IsTheDrafterItselfWhereHeadsHaveNoLayer) {
  const Weights weights = fixtures::toy_weights();
  for (const HeadInput input : {HeadInput::Sequential, HeadInput::PrefixSequential}) {
    const HeadsRunner runner(fixtures::arbitrary_heads(weights, 3, input), weights, 4);
    Shown shown;
    auto inner = std::make_unique<Recorder>(shown, 1);
    const Drafter* const before = inner.get();
    const std::unique_ptr<Drafter> after = behind_prefix(std::move(inner), runner);
    EXPECT_EQ(after.get() == before, input == HeadInput::Sequential);
  }
}

}  // namespace
}  // namespace medusa
