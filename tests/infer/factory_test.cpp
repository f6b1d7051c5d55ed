#include "infer/factory.h"

#include <gtest/gtest.h>

#include "heads/choice_tree.h"
#include "infer/drafters/none_drafter.h"
#include "infer/rules/greedy_rule.h"
#include "infer/rules/match_rule.h"
#include "infer/rules/typical_rule.h"
#include "tests/base/error_text.h"

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

TEST(Factory, ADrafterIsFreshForEachSequenceAndNeedsItsParts) {
  const DrafterFactory none = make_drafter_factory(DrafterKind::None, {});
  const auto first = none(), second = none();
  EXPECT_NE(dynamic_cast<NoneDrafter*>(first.get()), nullptr);
  EXPECT_NE(first, second);
  EXPECT_THROW(make_drafter_factory(DrafterKind::Medusa, {}), std::logic_error);
  const TreeShape shape;
  EXPECT_THROW(make_drafter_factory(DrafterKind::Medusa, {nullptr, &shape}), std::logic_error);
}

}  // namespace
}  // namespace medusa
