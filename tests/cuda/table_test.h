// Tests of a table of kernels: emulated, with the threads of a block in either order, and on a GPU
// where there is one.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/emulated_kernels.h"

namespace medusa {

template <typename Table>
struct TableChoice {
  const char* name;
  const Table* (*table)();
  at::DeviceType device;
  EmulatedOrder order;
  bool clusters = true;
};

/// Tensors go to the device as arguments and come back with .cpu() as results.
template <typename Table>
class TableTest : public testing::TestWithParam<TableChoice<Table>> {
 protected:
  void SetUp() override {
    const TableChoice<Table>& choice = this->GetParam();
    if (choice.device == at::kCUDA &&
        (choice.table() == nullptr || !at::detail::getCUDAHooks().hasCUDA() ||
         at::detail::getCUDAHooks().deviceCount() == 0))
      GTEST_SKIP() << "no GPU";
    set_emulated_order(choice.order);
    set_emulated_clusters(choice.clusters);
  }
  void TearDown() override {
    set_emulated_order(EmulatedOrder::Ascending);
    set_emulated_clusters(true);
  }

  const Table& kernels() const { return *this->GetParam().table(); }
  at::Device device() const { return this->GetParam().device; }
};

/// @param has_blocks  where a GPU has no clusters the kernels are others.
template <typename Table>
auto table_choices(const Table* (*emulated)(), const Table* (*real)(), bool has_blocks = false) {
  std::vector<TableChoice<Table>> out{
      {"emulated", emulated, at::kCPU, EmulatedOrder::Ascending},
      {"emulated_backwards", emulated, at::kCPU, EmulatedOrder::Descending},
      {"cuda", real, at::kCUDA, EmulatedOrder::Ascending}};
  if (has_blocks)
    out.push_back({"emulated_without_clusters", emulated, at::kCPU, EmulatedOrder::Ascending,
                   /*clusters=*/false});
  return testing::ValuesIn(out);
}

template <typename Table>
std::string table_choice_name(const testing::TestParamInfo<TableChoice<Table>>& each) {
  return each.param.name;
}

}  // namespace medusa
