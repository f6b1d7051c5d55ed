#include "backbone/cpu/threads/huge_pages.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace medusa {
namespace {

TEST(HugePages, AreZerosAndAligned) {
  for (const int64_t bytes : {0, 1, 63, 64, 5000, 3 << 20, 40 << 20}) {
    const at::Tensor tensor = huge_page_bytes(bytes);
    ASSERT_EQ(tensor.numel(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64, 0U) << bytes;
    EXPECT_FALSE(tensor.any().item<bool>()) << bytes;
    tensor.fill_(255);  // whoever comes next gets zeros all the same
  }
}

TEST(HugePages, TensorsDoNotOverlapAndOutliveEachOther) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 60; ++i) tensors.push_back(huge_page_bytes(1'000'000 + 7 * i).fill_(i));
  for (size_t i = 0; i < tensors.size(); i += 2)
    tensors[i].reset();  // others of the same region stay
  for (size_t i = 1; i < tensors.size(); i += 2)
    EXPECT_TRUE((tensors[i] == static_cast<int64_t>(i)).all().item<bool>()) << i;
}

TEST(HugePages, SmallTensorsLieSideBySide) {
  const at::Tensor a = huge_page_bytes(1000), b = huge_page_bytes(1000);
  EXPECT_EQ(b.data_ptr<uint8_t>() - a.data_ptr<uint8_t>(), 1024);
}

}  // namespace
}  // namespace medusa
