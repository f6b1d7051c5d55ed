#include "tools/row_timer.h"

#include <gtest/gtest.h>

#include "backbone/weights.h"

namespace medusa {
namespace {

TEST(RowTimer, CostsAreInStepsOfOneRow) {
  const StepCost cost = relative_cost(std::vector<double>{4, 5, 10});
  EXPECT_EQ(cost.relative, (std::vector<double>{1, 1.25, 2.5}));
  EXPECT_EQ(cost(2), 1.25);
}

TEST(RowTimer, TimesAscendWithTheRows) {
  const std::filesystem::path model =
      std::filesystem::path(MEDUSA_SHARED_DATA) / "models" / "stories260K";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "no " << model;
  Llama llama(load_weights(model, at::kFloat, at::kCPU));
  const std::vector<double> ms = time_rows(llama);
  ASSERT_EQ(ms.size(), 32U);
  EXPECT_GT(ms.front(), 0);
  EXPECT_TRUE(std::is_sorted(ms.begin(), ms.end()));
}

}  // namespace
}  // namespace medusa
