// The choice tree as a picture: nodes sized and colored by how often their path was right.
#pragma once

#include <string>
#include <vector>

#include "heads/tree/choice_tree.h"

namespace medusa {

/// Up to about 64 nodes stay readable. Upright: levels from top to bottom, for wide pages;
/// otherwise from left to right, for narrow ones.
/// @param width  CSS pixels; a tree that needs more gets more.
std::string draw_tree(const ChoiceTree& tree, double width, bool upright);

/// Share of positions at which all drafts of the tree's path i were right, entry i + 1; 1 for the
/// root. Empty if the tree was not calibrated.
std::vector<double> path_shares(const ChoiceTree& tree);

}  // namespace medusa
