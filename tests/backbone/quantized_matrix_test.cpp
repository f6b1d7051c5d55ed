#include "backbone/quantized_matrix.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backbone/files/block_decoders.h"
#include "backbone/files/dequantize.h"
#include "tests/backbone/normal_tensor.h"
#include "tests/backbone/quantized_weights.h"

namespace medusa {
namespace {

using fixtures::normal;

constexpr GgmlType kQuantTypes[] = {GgmlType::Q4_0, GgmlType::Q4_1,   GgmlType::Q5_0,
                                    GgmlType::Q5_1, GgmlType::Q8_0,   GgmlType::Q2_K,
                                    GgmlType::Q3_K, GgmlType::Q4_K,   GgmlType::Q5_K,
                                    GgmlType::Q6_K, GgmlType::IQ4_NL, GgmlType::IQ4_XS};

/// Random bytes as blocks; every 16-bit number that may be a scale is a half near 0.01.
std::vector<uint8_t> random_blocks(GgmlType type, int64_t count, uint32_t seed) {
  const GgmlTypeInfo& info = ggml_type_info(type);
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count * info.block_bytes));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  const auto put_half = [&](int64_t block, int64_t at) {
    const c10::Half half(0.01F + 0.0001F * static_cast<float>(random() % 100));
    std::memcpy(&bytes[static_cast<size_t>(block * info.block_bytes + at)], &half.x, 2);
  };
  for (int64_t block = 0; block < count; ++block) switch (type) {
      case GgmlType::Q2_K:
        put_half(block, 80), put_half(block, 82);
        break;
      case GgmlType::Q3_K:
        put_half(block, 108);
        break;
      case GgmlType::Q6_K:
        put_half(block, 208);
        break;
      case GgmlType::Q4_1:
      case GgmlType::Q5_1:
      case GgmlType::Q4_K:
      case GgmlType::Q5_K:
        put_half(block, 2);
        [[fallthrough]];
      default:
        put_half(block, 0);
    }
  return bytes;
}

TEST(QuantizedMatrix, HoldsWhatTheFileStandsFor) {
  for (const GgmlType type : kQuantTypes) {
    const GgmlTypeInfo& info = ggml_type_info(type);
    const auto bytes = random_blocks(type, 6, 1);
    const int64_t k = 2 * info.block_size;
    at::Tensor exact = at::empty({3, k}, at::kFloat);
    dequantize(type, bytes, {exact.data_ptr<float>(), static_cast<size_t>(exact.numel())});
    const QuantizedMatrix matrix = read_quantized(type, bytes, 3, k);
    const at::Tensor elements = dequantize_matrix(matrix);
    ASSERT_EQ(elements.sizes(), exact.sizes()) << info.name;
    if (info.block_size == 32) {
      EXPECT_TRUE(at::equal(elements, exact)) << info.name;
    } else {  // scales are rounded to half precision
      const float error = (elements - exact).abs().max().item<float>();
      EXPECT_LT(error, 1e-3F * exact.abs().max().item<float>()) << info.name;
    }
  }
  EXPECT_FALSE(quant_format(GgmlType::F16));
}

TEST(QuantizedMatrix, QuantizedElementsAreWithinHalfAStepOfTheirBlock) {
  at::Tensor weight = normal({5, 100}, 2);
  for (int64_t begin = 0, size = 32; begin < 100; begin += size)  // each block much smaller
    weight.narrow(1, begin, std::min(size, 100 - begin)).mul_(std::pow(0.3, begin / 32));
  const at::Tensor error = (dequantize_matrix(quantize_matrix(weight)) - weight).abs();
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t begin = 0; begin < 100; begin += 32) {
      const auto largest = [&](const at::Tensor& of) {
        return of[row]
            .slice(0, begin, std::min<int64_t>(begin + 32, 100))
            .abs()
            .max()
            .item<float>();
      };
      EXPECT_LT(largest(error), 0.52F * largest(weight) / 127) << row << " " << begin;
    }
  EXPECT_TRUE(
      at::equal(dequantize_matrix(quantize_matrix(at::zeros({2, 40}))), at::zeros({2, 40})));
}

TEST(QuantizedMatrix, StackedMatricesKeepEveryNumber) {
  const at::Tensor weight = normal({4, 72}, 3);
  for (const QuantFormat a : kQuantFormats)
    for (const QuantFormat b : kQuantFormats) {
      const QuantizedMatrix first = in_format(weight, a), second = in_format(weight, b);
      const at::Tensor expected = at::cat({dequantize_matrix(first), dequantize_matrix(second)});
      const at::Tensor stacked = dequantize_matrix(stack_quantized({first, second}));
      // Mins are added to scaled quants: one rounding more than quants that are signed.
      EXPECT_LT((stacked - expected).abs().max().item<float>(), 1e-6F);
    }
}

TEST(QuantizedMatrix, SelectedOutputsComeInOrderAndMissingOnesAreZero) {
  for (const QuantFormat format : kQuantFormats) {
    const QuantizedMatrix matrix = in_format(normal({4, 64}, 4), format);
    const at::Tensor all = dequantize_matrix(matrix);
    const std::vector<int64_t> order{2, -1, 0};
    const at::Tensor picked = dequantize_matrix(select_outputs(matrix, order));
    EXPECT_TRUE(at::equal(picked[0], all[2]));
    EXPECT_TRUE(at::equal(picked[1], at::zeros({64})));
    EXPECT_TRUE(at::equal(picked[2], all[0]));
  }
}

TEST(QuantizedMatrix, RowsAreRoundedToQuantsOfTheLargestOf32) {
  at::Tensor x = at::zeros({1, 40}, at::kFloat);
  x[0][0] = -127.0F, x[0][1] = 2.5F, x[0][2] = 0.4F, x[0][33] = 1.0F;
  const at::Tensor rounded = round_to_quantized(x);
  EXPECT_EQ(rounded[0][0].item<float>(), -127.0F);
  EXPECT_EQ(rounded[0][1].item<float>(), 2.0F);  // ties to even
  EXPECT_EQ(rounded[0][2].item<float>(), 0.0F);
  EXPECT_EQ(rounded[0][33].item<float>(), 1.0F);  // of another block
}

}  // namespace
}  // namespace medusa
