// Trees of a fixed shape for tests of the step's kernels.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backbone/cuda/device_tensors.h"
#include "base/random.h"
#include "infer/cuda/step_kernels.h"

namespace medusa {

/// Small whole numbers, addressed by a name.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  /// 0 to sides - 1.
  int32_t roll(int64_t sides) {
    return static_cast<int32_t>(random_.uniform(RandomUse::Init, next_++) *
                                static_cast<double>(sides));
  }

 private:
  Random random_;
  int64_t next_ = 0;
};

inline at::Tensor ints(const std::vector<int32_t>& values, at::Device device) {
  return at::tensor(at::ArrayRef<int32_t>(values), at::kInt).to(device);
}
inline at::Tensor words(const std::vector<uint64_t>& values, at::Device device) {
  at::Tensor out = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), static_cast<uint64_t*>(out.data_ptr()));
  return out.to(device);
}
inline std::vector<int32_t> vector_of(const at::Tensor& x) {
  const at::Tensor flat = x.cpu().flatten().contiguous();
  return {flat.data_ptr<int32_t>(), flat.data_ptr<int32_t>() + flat.numel()};
}
/// A shape, and what the kernels read of it.
struct TestTree {
  std::vector<int32_t> parents, depths;
  std::vector<uint64_t> paths;

  explicit TestTree(std::vector<int32_t> of) : parents(std::move(of)) {
    for (size_t i = 0; i < parents.size(); ++i) {
      const auto parent = static_cast<size_t>(std::max(parents[i], 0));
      depths.push_back(i == 0 ? 0 : depths[parent] + 1);
      paths.push_back((i == 0 ? 0 : paths[parent]) | uint64_t{1} << i);
    }
  }
  size_t size() const { return parents.size(); }
  int32_t num_nodes() const { return static_cast<int32_t>(size()); }
  int32_t max_depth() const { return *std::max_element(depths.begin(), depths.end()); }
};

/// @param spread  a parent is one of the so many nodes before: 1 is a chain.
inline TestTree random_shape(Dice& dice, int32_t num_nodes, int32_t spread) {
  std::vector<int32_t> parents{-1};
  for (int32_t i = 1; i < num_nodes; ++i) parents.push_back(i - 1 - dice.roll(std::min(i, spread)));
  return TestTree(std::move(parents));
}

class TreeOnDevice {
 public:
  TreeOnDevice(const TestTree& shape, at::Device device)
      : parents_(ints(shape.parents, device)),
        depths_(ints(shape.depths, device)),
        paths_(words(shape.paths, device)),
        max_depth_(shape.max_depth()) {}

  DeviceTree view() const {
    return {.parents = elements<int32_t>(parents_),
            .depths = elements<int32_t>(depths_),
            .paths = elements<uint64_t>(paths_),
            .num_nodes = static_cast<int32_t>(parents_.size(0)),
            .max_depth = max_depth_};
  }

 private:
  at::Tensor parents_, depths_, paths_;
  int32_t max_depth_;
};

}  // namespace medusa
