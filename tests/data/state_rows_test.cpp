#include "data/dataset/state_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/random.h"

namespace medusa {
namespace {

uint16_t bits_of(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);  // exact ones alone
}
float value_of(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

std::vector<uint16_t> there_and_back(const std::vector<uint16_t>& rows, int64_t width) {
  const Int8Rows rounded = round_rows(rows, width);
  std::vector<uint16_t> out(rows.size());
  unround_rows(rounded.levels, rounded.scales, out);
  return out;
}

TEST(StateRows, EachRowHasItsOwnScale) {
  const Int8Rows rows =
      round_rows(std::vector{bits_of(127), bits_of(-64), bits_of(0.25F), bits_of(-0.125F)}, 2);
  EXPECT_EQ(rows.levels, (std::vector<int8_t>{127, -64, 127, -64}));
  EXPECT_EQ(rows.scales, (std::vector<float>{1, 0.25F / 127}));
}

TEST(StateRows, AreOffByHalfALevelAtMost) {
  constexpr int64_t kWidth = 64;
  std::vector<uint16_t> rows;
  for (int64_t i = 0; i < 50 * kWidth; ++i) {
    const auto scale = static_cast<float>(std::pow(4, i / kWidth % 7 - 3));
    const double number = 2 * Random(5).uniform(RandomUse::Init, i) - 1;
    rows.push_back(bits_of(scale * static_cast<float>(number)));
  }
  const auto again = there_and_back(rows, kWidth);
  for (size_t begin = 0; begin < rows.size(); begin += kWidth) {
    float largest = 0;
    for (size_t i = begin; i < begin + kWidth; ++i)
      largest = std::max(largest, std::abs(value_of(rows[i])));
    for (size_t i = begin; i < begin + kWidth; ++i)  // and bfloat16's own rounding
      ASSERT_LE(std::abs(value_of(again[i]) - value_of(rows[i])),
                largest / 254 + std::abs(value_of(rows[i])) / 256);
  }
}

TEST(StateRows, ZerosStayAndWhatIsNoNumberStaysNone) {
  EXPECT_EQ(there_and_back({0, 0, 0}, 3), (std::vector<uint16_t>{0, 0, 0}));
  for (const float strange : {std::nanf(""), -std::nanf(""), INFINITY, -INFINITY}) {
    const auto row = there_and_back({bits_of(1), bits_of(strange), bits_of(2)}, 3);
    for (const uint16_t bits : row) EXPECT_TRUE(std::isnan(value_of(bits)));
  }
  EXPECT_EQ(state_row_bytes(StateFormat::Bfloat16, 576), 1152);
  EXPECT_EQ(state_row_bytes(StateFormat::Int8, 576), 580);
}

}  // namespace
}  // namespace medusa
