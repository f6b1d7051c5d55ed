#include "base/check.h"

#include <gtest/gtest.h>

namespace medusa {
namespace {

TEST(Assert, SaysThePlaceTheConditionAndTheValues) {
  const int parent = 7, node = 3;
  try {
    MEDUSA_ASSERT(parent < node, parent, node);
    FAIL();
  } catch (const std::logic_error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("check_test.cpp:11: assertion failed: parent < node, 7, 3"),
              std::string::npos)
        << text;
  }
}

TEST(Assert, CostsNothingWhenItHolds) {
  int evaluated = 0;
  MEDUSA_ASSERT(true, ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

}  // namespace
}  // namespace medusa
