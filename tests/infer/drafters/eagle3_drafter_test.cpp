#include "infer/drafters/eagle3_drafter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "infer/backbone_target.h"
#include "infer/decoder.h"
#include "infer/drafters/merge_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "tests/base/temp_folder.h"
#include "tests/heads/eagle3/small_eagle3.h"
#include "tests/infer/toy_drafters.h"

namespace medusa {
namespace {

class Eagle3DrafterTest : public testing::Test {
 protected:
  Eagle3DrafterTest() : text_(golden_.at("text").get<std::vector<TokenId>>()) {
    golden_.at("nodes").get_to(config_.nodes);
    golden_.at("depth").get_to(config_.depth);
    golden_.at("beam").get_to(config_.beam);
  }

  DraftContext context(int32_t max_depth = 20, int32_t max_nodes = 64) const {
    return {text_, at::zeros({64}), max_depth, max_nodes};
  }

  /// A drafter that has read the golden text.
  std::unique_ptr<Eagle3Drafter> ready(const Eagle3Config& config) {
    auto drafter = std::make_unique<Eagle3Drafter>(model_, config);
    drafter->begin(text_);
    drafter->read_prompt(features_.narrow(0, 0, 12));
    drafter->read_prompt(features_.narrow(0, 12, 8));
    return drafter;
  }

  fixtures::TempFolder folder_;
  nlohmann::json golden_ = fixtures::eagle3_golden();
  std::vector<TokenId> text_;  // 21 tokens
  Eagle3Config config_;
  at::Tensor features_ = fixtures::eagle3_features();  // of all but the last
  Eagle3Model model_{
      fixtures::small_eagle3(folder_.path()), fixtures::eagle3_target(), {}, kEagle3MostRows};
};

/// Each node's path and its probability as its confidences say.
std::map<std::vector<TokenId>, double> paths_of(const CandidateTree& tree) {
  std::vector<std::vector<TokenId>> paths(1);
  std::vector<double> log_probs{0};
  std::map<std::vector<TokenId>, double> out;
  for (size_t i = 1; i < tree.tokens.size(); ++i) {
    const auto parent = static_cast<size_t>(tree.parents[i]);
    paths.push_back(paths[parent]);
    paths.back().push_back(tree.tokens[i]);
    log_probs.push_back(log_probs[parent] + std::log(static_cast<double>(tree.confidences[i])));
    out[paths.back()] = log_probs.back();
  }
  return out;
}

TEST_F(Eagle3DrafterTest, GrowsTheTreeOfTheDefinition) {
  const CandidateTree tree = ready(config_)->propose(context(), Random(1));
  EXPECT_EQ(tree.num_verify, config_.nodes);
  EXPECT_FALSE(tree.draft_probs.defined());
  const auto paths = paths_of(tree);
  ASSERT_EQ(paths.size(), golden_.at("tree").size());
  for (const auto& node : golden_.at("tree")) {
    const auto found = paths.find(node.at("path").get<std::vector<TokenId>>());
    ASSERT_NE(found, paths.end()) << node;
    EXPECT_NEAR(found->second, node.at("log_prob").get<double>(), 1e-3) << node;
  }
}

TEST_F(Eagle3DrafterTest, KeepsToTheLimitsOfAStep) {
  const auto drafter = ready(config_);
  EXPECT_EQ(drafter->propose(context(0), Random(1)).size(), 1);
  EXPECT_EQ(drafter->propose(context(20, 1), Random(1)).size(), 1);
  const auto whole = paths_of(drafter->propose(context(), Random(1)));
  for (const auto& [path, log_prob] : paths_of(drafter->propose(context(2), Random(1))))
    EXPECT_LE(path.size(), 2U);
  for (const auto& [path, log_prob] : paths_of(drafter->propose(context(20, 6), Random(1))))
    EXPECT_NEAR(whole.at(path), log_prob, 1e-4);  // the best of them
  EXPECT_EQ(paths_of(drafter->propose(context(), Random(1))).size(), whole.size());
}

/// What a step made text of enters the draft, whoever proposed it and wherever it stood in a tree.
TEST_F(Eagle3DrafterTest, ReadsTheFeaturesOfWhatWasAccepted) {
  const std::vector<TokenId> all = text_;
  const auto whole = ready(config_);
  const auto expected = paths_of(whole->propose(context(), Random(1)));

  text_.resize(14);  // the rest comes in two steps
  Eagle3Drafter drafter(model_, config_);
  drafter.begin(text_);
  drafter.read_prompt(features_.narrow(0, 0, 13));
  drafter.propose(context(), Random(1));  // leaves nothing behind
  const auto step = [&](const CandidateTree& tree, const std::vector<int64_t>& rows,
                        const Acceptance& accepted) {
    TargetOutput output;
    output.features = features_.index_select(0, at::tensor(rows, at::kLong));
    drafter.observe(tree, output, accepted);
    for (const TokenId token : emitted_tokens(tree, accepted.path, accepted.next))
      text_.push_back(token);
  };
  // Nodes 1 and 3 are others' and wrong; their features are somebody else's.
  CandidateTree tree{{all[13], 99, all[14], 98, all[15]}, {-1, 0, 0, 1, 2}, 5, {}};
  step(tree, {13, 0, 14, 1, 15}, {{2, 4}, all[16]});
  tree = {{all[16], all[17], all[18], all[19]}, {-1, 0, 1, 2}, 4, {}};
  step(tree, {16, 17, 18, 19}, {{1, 2, 3}, all[20]});
  ASSERT_EQ(text_, all);
  const auto paths = paths_of(drafter.propose(context(), Random(1)));
  ASSERT_EQ(paths.size(), expected.size());
  for (const auto& [path, log_prob] : expected) EXPECT_NEAR(paths.at(path), log_prob, 1e-3);
}

TEST_F(Eagle3DrafterTest, APromptOfOneTokenHasNoFeatures) {
  Eagle3Drafter drafter(model_, config_);
  text_.resize(1);
  drafter.begin(text_);
  EXPECT_EQ(drafter.propose(context(), Random(1)).size(), 1);
}

/// Remembers what the drafter was given.
class Watching : public Drafter {
 public:
  Watching(std::unique_ptr<Drafter> inner, std::vector<at::Tensor>& features)
      : inner_(std::move(inner)), features_(features) {}
  std::span<const int32_t> feature_layers() const override { return inner_->feature_layers(); }
  void begin(std::span<const TokenId> prompt) override { inner_->begin(prompt); }
  void read_prompt(const at::Tensor& features) override {
    features_.push_back(features.clone());
    inner_->read_prompt(features);
  }
  CandidateTree propose(const DraftContext& context, const Random& random) override {
    return inner_->propose(context, random);
  }
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override {
    features_.push_back(output.features[0].unsqueeze(0).clone());
    for (const int32_t node : accepted.path)
      features_.push_back(output.features[node].unsqueeze(0).clone());
    inner_->observe(tree, output, accepted);
  }

 private:
  std::unique_ptr<Drafter> inner_;
  std::vector<at::Tensor>& features_;
};

/// Alone and inside merge, also where the cache already holds the prompt.
TEST_F(Eagle3DrafterTest, IsGivenTheFeaturesOfTheWholeText) {
  Llama llama(fixtures::eagle3_target(at::kBFloat16));
  Eagle3Model model(fixtures::small_eagle3(folder_.path()), llama.weights());
  BackboneTarget target(llama, 1, 512);
  const std::vector<TokenId> prompt = random_tokens(5, 200);  // more than one pass
  for (const bool merged : {false, true, false}) {
    std::vector<at::Tensor> features;
    std::vector<TokenId> text = prompt;
    DecodeRequest request{prompt, {40, 64, {}}, Random(1), {}};
    request.emit = [&](const EmittedToken& token) {
      text.push_back(token.id);
      return true;
    };
    const DrafterFactory make = [&]() -> std::unique_ptr<Drafter> {
      auto watched =
          std::make_unique<Watching>(std::make_unique<Eagle3Drafter>(model, config_), features);
      if (!merged) return watched;
      std::vector<Proposer> one;
      one.push_back({DrafterKind::Eagle3, std::move(watched), false});
      return std::make_unique<MergeDrafter>(std::move(one), 16, StepCost{});
    };
    const DecodeStats stats = decode_one(target, GreedyRule(), make, request).stats;
    EXPECT_EQ(stats.cached_prompt_tokens, 0) << "cached rows have no features";
    KvCache cache = llama.make_cache(1, 512);
    const Segment whole{cache.open(), std::span(text).first(text.size() - 1), {}};
    Features expected{{2, 4, 5}, std::vector<int32_t>(text.size() - 1)};
    for (size_t i = 0; i < expected.rows.size(); ++i) expected.rows[i] = static_cast<int32_t>(i);
    llama.forward({&whole, 1}, cache, {}, &expected);
    EXPECT_TRUE(at::equal(at::cat(features), expected.values)) << merged;
  }
}

}  // namespace
}  // namespace medusa
