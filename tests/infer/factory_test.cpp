#include "infer/factory.h"

#include <gtest/gtest.h>

#include "heads/tree/choice_tree.h"
#include "infer/drafter.h"
#include "infer/rules/blockwise_rule.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/rejection_rule.h"
#include "infer/rules/typical_rule.h"
#include "infer/step_cost.h"
#include "tests/base/error_text.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

InferConfig config_of(RuleKind rule, double temperature) {
  InferConfig config;
  config.rule = rule;
  config.sampling.temperature = temperature;
  return config;
}

template <typename Rule>
bool makes(RuleKind rule, double temperature) {
  const auto made = make_rule(config_of(rule, temperature));
  return dynamic_cast<const Rule*>(made.get()) != nullptr;
}

TEST(Factory, AutoIsGreedyAtTemperatureZeroAndMatchAbove) {
  EXPECT_TRUE(makes<GreedyRule>(RuleKind::Auto, 0));
  EXPECT_TRUE(makes<MatchRule>(RuleKind::Auto, 0.5));
  EXPECT_TRUE(makes<GreedyRule>(RuleKind::Greedy, 0));
  EXPECT_TRUE(makes<MatchRule>(RuleKind::Match, 0.5));
  EXPECT_TRUE(makes<TypicalRule>(RuleKind::Typical, 0));
  EXPECT_TRUE(makes<TypicalRule>(RuleKind::Typical, 0.5));
}

TEST(Factory, OnlyTypicalIsLossy) {
  EXPECT_TRUE(make_rule(config_of(RuleKind::Greedy, 0))->lossless());
  EXPECT_TRUE(make_rule(config_of(RuleKind::Match, 1))->lossless());
  EXPECT_FALSE(make_rule(config_of(RuleKind::Typical, 1))->lossless());
}

TEST(Factory, ARuleThatCannotWorkAtTheTemperatureIsTheUsersError) {
  const auto error = [](RuleKind rule, double temperature) {
    return fixtures::error_text([&] { config_of(rule, temperature).validate(); });
  };
  EXPECT_EQ(error(RuleKind::Greedy, 0.7),
            "rule 'greedy' with temperature 0.7, expected temperature 0; use rule 'match' to "
            "sample");
  EXPECT_EQ(error(RuleKind::Match, 0),
            "rule 'match' with temperature 0, expected a temperature above 0; use rule 'greedy' "
            "for the most probable text");
  for (const double temperature : {0.0, 0.7}) {
    EXPECT_EQ(error(RuleKind::Auto, temperature), "(no error)");
    EXPECT_EQ(error(RuleKind::Typical, temperature), "(no error)");
  }
}

TEST(Factory, RulesByTheirNames) {
  EXPECT_TRUE(makes<RejectionRule>(RuleKind::Rejection, 0.5));
  EXPECT_TRUE(makes<MatchRule>(RuleKind::Nucleus, 0.5));
  EXPECT_TRUE(makes<BlockwiseRule>(RuleKind::Blockwise, 0));
}

TEST(Factory, ARuleThatCannotWorkWithTheDrafterIsTheUsersError) {
  InferConfig config = config_of(RuleKind::Blockwise, 0);
  for (const auto& [name, kind] : EnumNames<DrafterKind>::values) {
    config.drafter = kind;
    EXPECT_EQ(fixtures::error_text([&] { config.validate(); }),
              kind == DrafterKind::Blockwise
                  ? "(no error)"
                  : "rule 'blockwise' with drafter '" + std::string(name) +
                        "', expected drafter 'blockwise', whose block it judges; use rule 'greedy' "
                        "or 'typical' with this drafter");
  }
  for (const auto& [rule_name, rule] : EnumNames<RuleKind>::values) {
    if (rule == RuleKind::Blockwise) continue;
    const bool samples =
        rule == RuleKind::Match || rule == RuleKind::Nucleus || rule == RuleKind::Rejection;
    config = config_of(rule, samples ? 0.7 : 0);
    config.sampling.top_p = 0.9;
    for (const auto& [name, kind] : EnumNames<DrafterKind>::values) {
      config.drafter = kind;
      EXPECT_EQ(fixtures::error_text([&] { config.validate(); }), "(no error)")
          << name << ", " << rule_name;
    }
  }
}

TEST(Factory, TheNucleusIsSmallerThanEverything) {
  InferConfig config = config_of(RuleKind::Nucleus, 0.7);
  EXPECT_EQ(fixtures::error_text([&] { config.validate(); }),
            "rule 'nucleus' with top_p 1, expected top_p below 1; use rule 'match' to sample from "
            "all tokens");
}

TEST(Factory, OnlyWhatADrafterNeedsIsLoaded) {
  const auto needs = [](DrafterKind kind, std::vector<DrafterKind> merged = {}) {
    InferConfig config;
    config.drafter = kind;
    config.merge.drafters = std::move(merged);
    const DraftNeeds out = needs_of(config);
    return std::tuple(out.heads, out.tree, out.store);
  };
  using Kind = DrafterKind;
  for (const Kind kind : {Kind::None, Kind::PromptLookup, Kind::Jacobi, Kind::Lookahead})
    EXPECT_EQ(needs(kind), std::tuple(false, false, false));
  EXPECT_EQ(needs(Kind::Medusa), std::tuple(true, true, false));
  EXPECT_EQ(needs(Kind::Blockwise), std::tuple(true, false, false));
  EXPECT_EQ(needs(Kind::Retrieval), std::tuple(false, false, true));
  EXPECT_EQ(needs(Kind::Merge, {Kind::Medusa, Kind::PromptLookup}), std::tuple(true, true, false));
  EXPECT_EQ(needs(Kind::Merge, {Kind::Retrieval, Kind::Blockwise}), std::tuple(true, false, true));
}

TEST(Factory, DraftersOfOneDraftModelNeedTheSame) {
  // A bench loads one draft model for all that need the same.
  InferConfig config;
  config.drafter = DrafterKind::DraftModel;
  const DraftNeeds alone = needs_of(config);
  EXPECT_TRUE(alone.draft);
  config.drafter = DrafterKind::Specinfer;  // prompt lookup beside it; all that it finds
  EXPECT_EQ(needs_of(config), alone);
  config.drafter = DrafterKind::Sequoia;
  EXPECT_EQ(needs_of(config), alone);
  config.sequoia.source = SequoiaSource::Medusa;
  EXPECT_FALSE(needs_of(config).draft);
  EXPECT_TRUE(needs_of(config).heads);
  EXPECT_GT(needs_of(config).drafts, 1);
}

TEST(Factory, ABlockOfMoreTokensThanHeadsIsTheUsersErrorAtTheStart) {
  fixtures::ToyHeads heads;
  InferConfig config;
  config.drafter = DrafterKind::Blockwise;
  config.blockwise.drafter.block = 4;
  EXPECT_EQ(
      fixtures::error_text([&] { make_drafter_factory(config, heads.parts()); }),
      "blockwise: block is 4, expected at most 3, the number of heads; lower it or train more "
      "heads");
}

TEST(Factory, ADrafterIsFreshForEachSequenceAndNeedsItsParts) {
  InferConfig config;
  config.drafter = DrafterKind::None;
  const DrafterFactory none = make_drafter_factory(config, {});
  const auto first = none(), second = none();
  EXPECT_NE(dynamic_cast<NoneDrafter*>(first.get()), nullptr);
  EXPECT_NE(first, second);
  config.drafter = DrafterKind::Medusa;
  EXPECT_THROW(make_drafter_factory(config, {}), std::logic_error);
  const TreeShape shape;
  EXPECT_THROW(make_drafter_factory(config, {nullptr, &shape}), std::logic_error);
  config.drafter = DrafterKind::Retrieval;
  EXPECT_THROW(make_drafter_factory(config, {}), std::logic_error);
}

TEST(Factory, DraftersOfOneFactoryTeachEachOtherWhatPays) {
  InferConfig config;
  config.drafter = DrafterKind::PromptLookup;
  const StepCost cost{{1, 1.2, 1.4}};
  DraftParts parts;
  parts.cost = &cost;
  const DrafterFactory make = make_drafter_factory(config, parts);
  const std::vector<TokenId> text{1, 2, 100, 1, 2};  // goes on with 101
  const auto proposed = [&](Drafter& drafter) {
    drafter.begin(text);
    const CandidateTree tree = drafter.propose({text, {}, 2, 3, 0, 1}, Random(1));
    drafter.observe(tree, {}, {{}, 101});
    return tree.size();
  };
  EXPECT_GT(proposed(*make()), 1);
  for (int i = 0; i < 30; ++i) proposed(*make());
  EXPECT_EQ(proposed(*make()), 1) << "what followed once has never followed again";
  EXPECT_GT(proposed(*make_drafter_factory(config, parts)()), 1) << "another factory";
}

}  // namespace
}  // namespace medusa
