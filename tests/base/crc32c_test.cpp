#include "base/formats/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace medusa {
namespace {

// The check value of its definition and the examples of RFC 3720, B.4.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(""), 0U);
}

}  // namespace
}  // namespace medusa
