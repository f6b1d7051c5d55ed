#include "infer/rules/rejection_rule.h"

#include <gtest/gtest.h>

#include "infer/factory.h"
#include "tests/infer/toy_heads.h"
#include "tests/infer/toy_pairs.h"

namespace medusa {
namespace {

using fixtures::test_pairs;

constexpr uint64_t kSeeds = 6000;
using fixtures::kPrompt;
using fixtures::kWarm;
const SamplingConfig kNucleus{.temperature = 1.2, .top_p = 0.8};

using Build = fixtures::ToyDrafter::Build;

DrafterFactory make(Build build) {
  return [build] { return std::make_unique<fixtures::ToyDrafter>(build); };
}

/// Three siblings chosen outright under the root, two under each of them.
DrafterFactory chosen_siblings() {
  return make([](const DraftContext& context, const Random&, CandidateTree& tree) {
    for (const TokenId first : largest_tokens(fixtures::toy_logits(context.tokens), 3))
      fixtures::add_node(tree, 0, first);
    for (int32_t parent = 1; parent <= 3; ++parent)
      for (const TokenId second : {0, 4}) fixtures::add_node(tree, parent, second);
  });
}

DrafterFactory chosen_duplicates() {
  return make([](const DraftContext& context, const Random&, CandidateTree& tree) {
    const TokenId best = argmax(fixtures::toy_logits(context.tokens));
    for (const TokenId token : {best, best, 2, best, 2}) fixtures::add_node(tree, 0, token);
  });
}

/// A draft distribution that is far from the target's: q(v) grows with v, and with the node.
std::vector<float> draft_row(int32_t node) {
  std::vector<float> q;
  float sum = 0;
  for (int64_t v = 0; v < fixtures::kToyVocab; ++v)
    sum += q.emplace_back(1 + static_cast<float>((v + node) % fixtures::kToyVocab));
  for (float& each : q) each /= sum;
  return q;
}

TokenId draw_draft(const std::vector<float>& q, const Random& random, int64_t position,
                   int32_t node) {
  double u = random.uniform(RandomUse::Draft, position, static_cast<uint64_t>(node));
  for (size_t v = 0; v < q.size(); ++v) {
    u -= static_cast<double>(q[v]);
    if (u < 0 && q[v] > 0) return static_cast<TokenId>(v);
  }
  return static_cast<TokenId>(std::max_element(q.begin(), q.end()) - q.begin());
}

/// Siblings drawn from one distribution, each with a child drawn from another; a chain when there
/// is one sibling.
DrafterFactory drawn_siblings(int32_t num_siblings, bool with_replacement) {
  return make([=](const DraftContext& context, const Random& random, CandidateTree& tree) {
    const auto position = static_cast<int64_t>(context.tokens.size());
    std::vector<at::Tensor> rows{at::zeros({fixtures::kToyVocab})};
    const auto add = [&](int32_t parent, const std::vector<float>& q) {
      const TokenId token = draw_draft(q, random, position, tree.size());
      rows.push_back(at::tensor(q));
      fixtures::add_node(tree, parent, token);
      return token;
    };
    std::vector<float> q = draft_row(0);
    for (int32_t i = 0; i < num_siblings; ++i) {
      const TokenId token = add(0, q);
      if (with_replacement) continue;
      q[static_cast<size_t>(token)] = 0;
      float sum = 0;
      for (const float each : q) sum += each;
      for (float& each : q) each /= sum;
    }
    for (int32_t i = 1; i <= num_siblings; ++i) add(i, draft_row(i));
    tree.draft_probs = at::stack(rows);
  });
}

struct Siblings {
  const char* name;
  DrafterFactory drafter;
};

std::vector<Siblings> cases() {
  return {{"chosen siblings", chosen_siblings()},
          {"chosen twins", chosen_duplicates()},
          {"drawn chain", drawn_siblings(1, true)},
          {"siblings drawn with replacement", drawn_siblings(3, true)},
          {"siblings drawn without replacement", drawn_siblings(3, false)},
          {"all tokens drawn without replacement", drawn_siblings(7, false)}};
}

TEST(RejectionRule, TextHasTheTargetsDistribution) {
  for (const SamplingConfig& sampling : {kWarm, kNucleus})
    for (const Siblings& each : cases()) {
      const auto test =
          test_pairs(RejectionRule(sampling), each.drafter, kPrompt, sampling, kSeeds);
      EXPECT_GT(test.p, fixtures::least_p()) << each.name << ", top_p " << sampling.top_p;
      EXPECT_GT(test.accepted, static_cast<int64_t>(kSeeds / 5)) << each.name;
    }
}

/// Takes each candidate as the true rule does, and draws what follows from the target itself
/// instead of the residual.
class WithoutResidual : public AcceptanceRule {
 public:
  Acceptance accept(const CandidateTree& tree, const TargetLogits& logits, int64_t root_position,
                    const Random& random) const override {
    Acceptance out = RejectionRule(kWarm).accept(tree, logits, root_position, random);
    const int32_t last = out.path.empty() ? 0 : out.path.back();
    const auto row = target_distribution(logits.row(last), kWarm);
    out.next = draw(row, random, RandomUse::Residual,
                    root_position + static_cast<int64_t>(out.path.size()));
    return out;
  }
  bool lossless() const override { return false; }
};

TEST(RejectionRule, TheTestTellsAWrongResidual) {
  for (const Siblings& each : cases())
    EXPECT_LT(test_pairs(WithoutResidual(), each.drafter, kPrompt, kWarm, kSeeds).p, 0.01)
        << each.name;
}

TEST(RejectionRule, TextHasTheTargetsDistributionWhateverTheDrafter) {
  const std::vector<TokenId> prompt{1, 2, 3, 5, 1, 2, 3, 4, 6, 1, 2, 3};
  fixtures::ToyHeads heads;
  InferConfig config;
  for (const auto& [name, kind] : EnumNames<DrafterKind>::values) {
    config.drafter = kind;
    const auto drafter = make_drafter_factory(config, heads.parts());
    EXPECT_GT(test_pairs(RejectionRule(kWarm), drafter, prompt, kWarm, 2500).p, fixtures::least_p())
        << name;
  }
}

TEST(RejectionRule, ADraftThatIsTheTargetIsAlwaysAccepted) {
  const std::vector<float> row = fixtures::toy_logits(kPrompt);
  std::vector<float> p(static_cast<size_t>(fixtures::kToyVocab), 0);
  for (const WeightedToken& each : target_distribution(row, kWarm))
    p[static_cast<size_t>(each.id)] = static_cast<float>(each.probability);
  const at::Tensor rows = at::stack({at::tensor(row), at::tensor(row)});
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CandidateTree tree = root_only(3);
    fixtures::add_node(tree, 0, draw_draft(p, Random(seed), 4, 1));
    tree.num_verify = 2;
    tree.draft_probs = at::stack({at::zeros_like(at::tensor(p)), at::tensor(p)});
    EXPECT_EQ(RejectionRule(kWarm).accept(tree, rows, 2, Random(seed)).path.size(), 1U) << seed;
  }
}

TEST(RejectionRule, ATokenOutsideTheNucleusIsNeverAccepted) {
  const SamplingConfig one{.temperature = 1, .top_k = 1};
  const std::vector<float> row = fixtures::toy_logits(kPrompt);
  const TokenId best = argmax(row);
  CandidateTree tree = root_only(3);
  for (TokenId v = 0; v < fixtures::kToyVocab; ++v)
    if (v != best) fixtures::add_node(tree, 0, v);
  tree.num_verify = tree.size();
  const at::Tensor rows = at::tensor(row).unsqueeze(0).repeat({tree.size(), 1});
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Acceptance out = RejectionRule(one).accept(tree, rows, 2, Random(seed));
    EXPECT_TRUE(out.path.empty());
    EXPECT_EQ(out.next, best);
  }
}

TEST(RejectionRule, NodesBehindNumVerifyAreNotCandidates) {
  const std::vector<float> row = fixtures::toy_logits(kPrompt);
  CandidateTree tree = root_only(3);
  for (TokenId v = 0; v < fixtures::kToyVocab; ++v) fixtures::add_node(tree, 0, v);
  const at::Tensor rows = at::tensor(row).unsqueeze(0).repeat({tree.size(), 1});
  for (uint64_t seed = 0; seed < 100; ++seed)
    EXPECT_TRUE(RejectionRule(kWarm).accept(tree, rows, 2, Random(seed)).path.empty());
}

}  // namespace
}  // namespace medusa
