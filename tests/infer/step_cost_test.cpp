#include "infer/step_cost.h"

#include <gtest/gtest.h>

namespace medusa {
namespace {

TEST(StepCost, GoesOnStraightBeyondWhatWasMeasured) {
  const StepCost cost{{1, 1.5, 1.75}};
  EXPECT_EQ(cost(1), 1);
  EXPECT_EQ(cost(3), 1.75);
  EXPECT_EQ(cost(5), 2.25);
  EXPECT_EQ(StepCost{}(7), 1);
}

TEST(StepCost, OfSequencesThatShareAPassIsTheirsOverTheirPlainStep) {
  // One sequence has a second row for nothing; two have it for half of their plain step.
  const StepCost alone{{1, 1, 1.25, 1.5}, 0.125};
  const StepCost shared = alone.for_batch(2);
  ASSERT_EQ(shared.relative.size(), 4);
  EXPECT_EQ(shared(1), 1);
  EXPECT_EQ(shared(2), 1.5);
  EXPECT_EQ(shared(4), 2.5) << "eight rows: four beyond the last, .25 each";
  EXPECT_EQ(shared.drafting, 0.25) << "each drafts for itself";
  EXPECT_EQ(alone.for_batch(1).relative, alone.relative);
  EXPECT_EQ(StepCost{}.for_batch(9)(3), 1);
}

}  // namespace
}  // namespace medusa
