// The choice tree as a picture. No two nodes touch: they stand side by side within a level, parents
// centered over their children, subtrees as close as their outlines allow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heads/tree/choice_tree.h"

namespace medusa {

struct TreeLayout {
  std::vector<double> places;  // [N] across the levels, from 0; neighbors are at least 1 apart
  double extent = 0;           // the largest place
};

/// @param parents  [N] parents[0] == -1, parents[i] < i; siblings stand in index order.
TreeLayout lay_out_tree(const std::vector<int32_t>& parents);

// The choice tree as a picture: nodes sized and colored by how often their path was right.

/// Up to about 64 nodes stay readable. Upright: levels from top to bottom, for wide pages;
/// otherwise from left to right, for narrow ones.
/// @param width  CSS pixels; a tree that needs more gets more.
std::string draw_tree(const ChoiceTree& tree, double width, bool upright);

/// Share of positions at which all drafts of the tree's path i were right, entry i + 1; 1 for the
/// root. Empty if the tree was not calibrated.
std::vector<double> path_shares(const ChoiceTree& tree);

}  // namespace medusa
