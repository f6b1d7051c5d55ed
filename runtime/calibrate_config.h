// Settings of fitting the choice tree.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fields.h"

namespace medusa {

struct CalibrateConfig {
  int64_t top_k = 10;
  int64_t max_nodes = 64;
  std::optional<int64_t> nodes{};
  int64_t positions = 20000;
  int64_t context = 256;
  int64_t repeats = 15;
  double smoothing = 20;

  template <typename Fields>
  void fields(Fields& f) {
    f("top_k", top_k, "drafts kept per head", between<int64_t>(1, 64));
    f("max_nodes", max_nodes, "largest tree looked at, the root included", between<int64_t>(2, 64));
    f("nodes", nodes,
      "size of the tree, the root included; null: the one with the most tokens per second here",
      between<int64_t>(2, 64));
    f("positions", positions, "most validation positions counted", at_least<int64_t>(1));
    f("context", context, "tokens before the steps that are timed", at_least<int64_t>(1));
    f("repeats", repeats, "timed steps of each size", at_least<int64_t>(3));
    f("smoothing", smoothing,
      "positions' worth of belief in the product of the heads' own accuracies", at_least(0.0));
  }
  void validate() const {}
};

}  // namespace medusa
