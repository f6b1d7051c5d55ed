#include "tools/report/tree_layout.h"

#include <algorithm>

namespace medusa {
namespace {

/// The outline of a subtree: leftmost and rightmost place on each of its levels, relative to its
/// root.
struct Outline {
  std::vector<double> left, right;
};

/// How far to the right of the group's origin a subtree must stand to be 1 apart on every level.
double clearance(const Outline& group, const Outline& subtree) {
  double shift = 0;
  for (size_t level = 0; level < std::min(group.right.size(), subtree.left.size()); ++level)
    shift = std::max(shift, group.right[level] + 1 - subtree.left[level]);
  return shift;
}

void merge(Outline& group, const Outline& subtree, double shift) {
  for (size_t level = 0; level < subtree.left.size(); ++level) {
    if (level == group.left.size()) {
      group.left.push_back(subtree.left[level] + shift);
      group.right.push_back(subtree.right[level] + shift);
    } else {
      group.left[level] = std::min(group.left[level], subtree.left[level] + shift);
      group.right[level] = std::max(group.right[level], subtree.right[level] + shift);
    }
  }
}

}  // namespace

TreeLayout lay_out_tree(const std::vector<int32_t>& parents) {
  const size_t num_nodes = parents.size();
  std::vector<std::vector<size_t>> children(num_nodes);
  for (size_t i = 1; i < num_nodes; ++i) children[static_cast<size_t>(parents[i])].push_back(i);

  // Children come after their parents, so going backwards meets every subtree complete.
  std::vector<double> offsets(num_nodes, 0);  // from the parent
  std::vector<Outline> outlines(num_nodes);
  for (size_t node = num_nodes; node-- > 0;) {
    Outline group;
    for (const size_t child : children[node]) {
      offsets[child] = clearance(group, outlines[child]);
      merge(group, outlines[child], offsets[child]);
    }
    const double center =
        children[node].empty()
            ? 0
            : (offsets[children[node].front()] + offsets[children[node].back()]) / 2;
    for (const size_t child : children[node]) offsets[child] -= center;
    Outline& own = outlines[node];
    own.left.push_back(0);
    own.right.push_back(0);
    for (size_t level = 0; level < group.left.size(); ++level) {
      own.left.push_back(group.left[level] - center);
      own.right.push_back(group.right[level] - center);
    }
  }

  TreeLayout layout;
  layout.places.assign(num_nodes, 0);
  for (size_t i = 1; i < num_nodes; ++i)
    layout.places[i] = layout.places[static_cast<size_t>(parents[i])] + offsets[i];
  const double leftmost =
      num_nodes == 0 ? 0 : *std::min_element(layout.places.begin(), layout.places.end());
  for (double& place : layout.places) {
    place -= leftmost;
    layout.extent = std::max(layout.extent, place);
  }
  return layout;
}

}  // namespace medusa
