#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "train/loss/row_loss.h"

namespace medusa {
namespace {

std::vector<float> some_logits(double spread) {
  std::vector<float> out;
  for (int64_t i = 0; i < 21; ++i)
    out.push_back(static_cast<float>(spread * (Random(5).uniform(RandomUse::Init, i) - 0.5)));
  return out;
}

struct TeacherTarget {
  std::vector<int32_t> rows{3, 17, 8, 0};
  std::vector<float> probs{0.5F, 0.3F, 0.15F, 0.05F};
  RowTarget get() const { return {17, rows, probs}; }
};

double reference(const std::vector<float>& logits, const TeacherTarget& target) {
  double total = 0, alpha = 0;
  for (const float z : logits) total += std::exp(static_cast<double>(z));
  for (size_t i = 0; i < target.rows.size(); ++i)
    alpha +=
        std::min(std::exp(static_cast<double>(logits[static_cast<size_t>(target.rows[i])])) / total,
                 static_cast<double>(target.probs[i]));
  return -std::log(alpha);
}

TEST(AcceptanceLoss, IsMinusTheLogOfTheAcceptance) {
  const TeacherTarget target;
  for (const double spread : {0.1, 4.0, 20.0}) {
    std::vector<float> logits = some_logits(spread);
    const RowLoss found = acceptance_loss(logits, target.get(), 0);
    EXPECT_NEAR(found.loss, reference(logits, target), 1e-4);
    EXPECT_EQ(found.rank, cross_entropy(logits, target.get(), 0).rank);
  }
}

TEST(AcceptanceLoss, TheGradientIsWholeWhereTheProbabilityHasFewBitsLeft) {
  for (const float away : {90.0F, 100.0F, 103.0F, 120.0F}) {  // e^-103 is the least number but one
    std::vector<float> logits{0, away};
    const int32_t row = 0;
    const float certain = 1;
    acceptance_loss(logits, RowTarget{0, {&row, 1}, {&certain, 1}}, 0.3F);
    EXPECT_FLOAT_EQ(logits[0], -0.3F) << away;
    EXPECT_FLOAT_EQ(logits[1], 0.3F) << away;
  }
}

TEST(AcceptanceLoss, TheGradientIsTheNumericOne) {
  const TeacherTarget target;
  for (const double spread : {0.1, 4.0, 12.0}) {
    const std::vector<float> logits = some_logits(spread);
    std::vector<float> gradient = logits;
    acceptance_loss(gradient, target.get(), 2);
    for (size_t i = 0; i < logits.size(); ++i) {
      std::vector<float> moved = logits;
      moved[i] += 0.01F;
      const double above = reference(moved, target);
      moved[i] -= 0.02F;
      const double below = reference(moved, target);
      EXPECT_NEAR(gradient[i], 2 * (above - below) / 0.02, 2e-3) << spread << " " << i;
    }
  }
}

TEST(AcceptanceLoss, OfOneCertainTokenIsCrossEntropy) {
  const std::vector<int32_t> row{4};
  const std::vector<float> certain{1};
  std::vector<float> a = some_logits(5), b = a;
  const RowLoss accepted = acceptance_loss(a, {4, row, certain}, 0.5F);
  const RowLoss crossed = cross_entropy(b, {4, row, certain}, 0.5F);
  EXPECT_NEAR(accepted.loss, crossed.loss, 1e-5);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

TEST(AcceptanceLoss, WhereNothingIsMissingThereIsNoGradient) {
  // The draft gives each wanted token more than the target does.
  const std::vector<int32_t> rows{1, 2};
  const std::vector<float> probs{0.45F, 0.45F};
  std::vector<float> logits{-200, 3, 3, -200};
  const RowLoss found = acceptance_loss(logits, {1, rows, probs}, 1);
  EXPECT_NEAR(found.loss, -std::log(0.9), 1e-6);
  for (const float each : logits) EXPECT_EQ(each, 0);
}

TEST(AcceptanceLoss, FarFromTheTargetItStillPointsThere) {
  const std::vector<int32_t> rows{1, 2};
  const std::vector<float> probs{0.5F, 0.5F};
  std::vector<float> logits{500, 0, 0, 0};
  const RowLoss found = acceptance_loss(logits, {1, rows, probs}, 1);
  EXPECT_TRUE(std::isfinite(found.loss));
  EXPECT_NEAR(logits[0], 1, 1e-6);
  EXPECT_NEAR(logits[1], -0.5, 1e-6);
}

}  // namespace
}  // namespace medusa
