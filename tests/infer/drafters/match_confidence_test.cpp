#include "infer/drafters/match_confidence.h"

#include <gtest/gtest.h>

namespace medusa {
namespace {

double own(const MatchEvidence& seen) { return match_confidence(seen, kTrustInOwnText); }

TEST(MatchConfidence, AgreesWithWhatWasMeasured) {
  EXPECT_NEAR(own({2, 1, 1, 1}), 0.43, 0.06);
  EXPECT_NEAR(own({4, 1, 1, 1}), 0.66, 0.06);
  EXPECT_NEAR(own({8, 1, 1, 1}), 0.84, 0.07);
  EXPECT_NEAR(match_confidence({2, 1, 1, 1}, kTrustInOtherTexts), 0.18, 0.06);
  EXPECT_NEAR(match_confidence({8, 1, 1, 1}, kTrustInOtherTexts), 0.36, 0.06);
}

TEST(MatchConfidence, GrowsWithLengthNumberAndAgreement) {
  EXPECT_LT(own({2, 1, 1, 1}), own({3, 1, 1, 1}));
  EXPECT_LT(own({2, 1, 1, 1}), own({2, 2, 2, 1}));
  EXPECT_LT(own({2, 1, 2, 2}), own({2, 2, 2, 1}) / 2);
}

TEST(MatchConfidence, IsAProbabilityAndSiblingsShareOne) {
  for (int64_t length = 1; length < 20; ++length)
    for (int64_t distinct = 1; distinct < 10; ++distinct)
      for (int64_t count = 1; count < 10; ++count) {
        const double confidence = own({length, count, count * distinct, distinct});
        EXPECT_GT(confidence, 0);
        EXPECT_LE(confidence * static_cast<double>(distinct), 1);
      }
}

}  // namespace
}  // namespace medusa
