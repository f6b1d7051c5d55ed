// Where the nodes of a tree stand so that no two touch: side by side within a level, parents
// centred over their children, subtrees as close as their outlines allow.
#pragma once

#include <cstdint>
#include <vector>

namespace medusa {

struct TreeLayout {
  std::vector<double> places;  // [N] across the levels, from 0; neighbors are at least 1 apart
  double extent = 0;           // the largest place
};

/// @param parents  [N] parents[0] == -1, parents[i] < i; siblings stand in index order.
TreeLayout lay_out_tree(const std::vector<int32_t>& parents);

}  // namespace medusa
