#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/train_stage.h"

namespace medusa {
namespace {

/// Two steps of two heads, with one number beside the loss.
StepSums two_steps() {
  StepSums sums;
  for (const double loss : {0.5, 0.1 + 0.2})
    sums.add({loss, 1, {{loss, 4, 5, 1, 2, 3}, {2 * loss, 4, 5, 0, 1, 2}}, {{"more", 7}}, {}});
  return sums;
}

TEST(StepSums, AreTheSameFromTheirNumbers) {
  const std::vector<double> numbers = two_steps().numbers();
  const auto read = StepSums::from_numbers(numbers);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->numbers(), numbers);
  EXPECT_EQ(read->steps, 2);
  EXPECT_EQ(read->heads[1].num_scored, 10);
  EXPECT_EQ(read->means, std::vector<double>{14});
  ASSERT_TRUE(StepSums::from_numbers({}));
  EXPECT_EQ(StepSums::from_numbers({})->steps, 0);
}

TEST(StepSums, AreNotMadeOfOtherNumbers) {
  const std::vector<double> good = two_steps().numbers();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const size_t changed : {0U, 2U, 4U, 8U, 12U})  // steps, heads, counts
    for (const double number : {-1.0, 0.5, 1e300, infinity, -infinity, std::nan("")}) {
      std::vector<double> numbers = good;
      numbers[changed] = number;
      EXPECT_FALSE(StepSums::from_numbers(numbers)) << changed << ": " << number;
    }
  EXPECT_FALSE(StepSums::from_numbers({1, 0.5}));
  EXPECT_FALSE(StepSums::from_numbers({1, 0.5, 1, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace medusa
