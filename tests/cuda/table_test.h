// Tests of a table of kernels: emulated, with the threads of a block in either order, and on a GPU
// where there is one.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

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

template <typename Table>
auto table_choices(const Table* (*emulated)(), const Table* (*real)()) {
  using Choice = TableChoice<Table>;
  return testing::Values(
      Choice{"emulated", emulated, at::kCPU, EmulatedOrder::Ascending},
      Choice{"emulated_backwards", emulated, at::kCPU, EmulatedOrder::Descending},
      Choice{"cuda", real, at::kCUDA, EmulatedOrder::Ascending});
}

/// The same for kernels that are others where a GPU has no clusters.
template <typename Table>
auto table_choices_and_blocks(const Table* (*emulated)(), const Table* (*real)()) {
  using Choice = TableChoice<Table>;
  return testing::Values(
      Choice{"emulated", emulated, at::kCPU, EmulatedOrder::Ascending},
      Choice{"emulated_backwards", emulated, at::kCPU, EmulatedOrder::Descending},
      Choice{"emulated_without_clusters", emulated, at::kCPU, EmulatedOrder::Ascending, false},
      Choice{"cuda", real, at::kCUDA, EmulatedOrder::Ascending});
}

template <typename Table>
std::string table_choice_name(const testing::TestParamInfo<TableChoice<Table>>& each) {
  return each.param.name;
}

}  // namespace medusa
