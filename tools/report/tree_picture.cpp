#include "tools/report/tree_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/report/html.h"
#include "tools/report/svg.h"

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

namespace {

constexpr double kMargin = 26;      // pixels around the tree
constexpr double kLevelNames = 58;  // pixels for the levels' names, beside an upright tree
constexpr double kSmallest = 8.5;   // radius in pixels that still holds a rank
constexpr double kLargest = 21;

/// The tree in pixels. Along: from level to level; across: from sibling to sibling.
struct Geometry {
  bool upright;
  double spacing;     // across
  double level_step;  // along
  double across_start, along_start;
  double width, height;

  double x(double along, double across) const { return upright ? across : along; }
  double y(double along, double across) const { return upright ? along : across; }
};

Geometry make_geometry(const TreeLayout& layout, int32_t depth, double width, bool upright) {
  Geometry g{.upright = upright,
             .spacing = 21,
             .level_step = 84,
             .across_start = 0,
             .along_start = kMargin,
             .width = width,
             .height = 0};
  if (upright) {
    g.across_start = kLevelNames + kMargin;
    const double room = width - g.across_start - kMargin;
    g.spacing = std::clamp(room / std::max(1.0, layout.extent), 19.0, 62.0);
    const double used = g.spacing * layout.extent;
    g.across_start += std::max(0.0, (room - used) / 2);
    g.width = std::max(width, g.across_start + used + kMargin);
    g.height = 2 * kMargin + g.level_step * depth;
  } else {
    constexpr double kHeader = 24;
    g.across_start = kHeader + kMargin;
    g.level_step = (width - 2 * kMargin) / std::max(1, depth);
    g.height = g.across_start + g.spacing * layout.extent + kMargin;
  }
  return g;
}

void draw_levels(Svg& svg, const TreeShape& shape, const Geometry& g, int32_t depth) {
  std::vector<int32_t> counts(static_cast<size_t>(depth) + 1, 0);
  for (const int32_t level : shape.depths) ++counts[static_cast<size_t>(level)];
  for (int32_t level = 0; level <= depth; ++level) {
    const double along = g.along_start + level * g.level_step;
    const std::string name = level == 0 ? "root" : fmt::format("head {}", level - 1);
    const std::string nodes = level == 0
                                  ? ""
                                  : fmt::format("{} node{}", counts[static_cast<size_t>(level)],
                                                counts[static_cast<size_t>(level)] == 1 ? "" : "s");
    if (g.upright) {
      svg.line(kLevelNames, along, g.width, along, "level");
      svg.text(0, along + (nodes.empty() ? 4 : -2), "name", name);
      svg.text(0, along + 13, "tick", nodes);
    } else {
      svg.line(along, 24, along, g.height, "level");
      svg.text(along, 14, "name middle", name);
    }
  }
}

struct Node {
  double along, across;  // pixels
  double x, y;
  double radius;
  double strength;  // 0 to 1: how often its path was right, compared with the most frequent one
};

std::vector<Node> place_nodes(const TreeShape& shape, const TreeLayout& layout, const Geometry& g,
                              const std::vector<double>& shares) {
  double most = 1e-9;
  for (size_t i = 1; i < shares.size(); ++i) most = std::max(most, shares[i]);
  const double largest = std::min(kLargest, 0.47 * g.spacing);
  const double smallest = std::min(kSmallest, largest);
  std::vector<Node> nodes;
  for (size_t i = 0; i < shape.parents.size(); ++i) {
    Node node{};
    node.along = g.along_start + g.level_step * shape.depths[i];
    node.across = g.across_start + g.spacing * layout.places[i];
    node.x = g.x(node.along, node.across);
    node.y = g.y(node.along, node.across);
    node.strength = shares.empty() ? 0.35 : std::min(1.0, std::sqrt(shares[i] / most));
    node.radius = smallest + (largest - smallest) * node.strength;
    nodes.push_back(node);
  }
  return nodes;
}

/// A curve that leaves and arrives in the direction of the levels.
void draw_edge(Svg& svg, const Geometry& g, const Node& node, const Node& parent, double share) {
  const double half = (parent.along + node.along) / 2;
  svg.path(fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", parent.x,
                       parent.y, g.x(half, parent.across), g.y(half, parent.across),
                       g.x(half, node.across), g.y(half, node.across), node.x, node.y),
           "edge", 1 + 6 * std::sqrt(share));
}

/// Size and shade both say how often: one of them is enough for any reader.
void draw_node(Svg& svg, const Node& node, int32_t rank, const std::string& tip) {
  const double font_size = std::max(10.0, 0.8 * node.radius);
  svg.circle(node.x, node.y, node.radius, "node-back");
  svg.circle(node.x, node.y, node.radius, "node", tip, 0.12 + 0.88 * node.strength);
  svg.text(node.x, node.y + 0.36 * font_size,
           node.strength > 0.62 ? "rank dark middle" : "rank middle", std::to_string(rank),
           font_size);
}

/// Shares beside those nodes of an upright tree that have room to their right.
void draw_shares(Svg& svg, const TreeShape& shape, const std::vector<double>& shares,
                 const std::vector<Node>& nodes, double width) {
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (shares[i] < 0.01) continue;
    const std::string text = fmt::format("{:.0f}\u00A0%", 100 * shares[i]);
    const double left = nodes[i].x + nodes[i].radius + 4;
    const double right = left + text_width(text, 11) + 4;
    bool free = right <= width;
    for (size_t j = 1; j < nodes.size() && free; ++j)
      free = shape.depths[j] != shape.depths[i] || nodes[j].x <= nodes[i].x ||
             nodes[j].x - nodes[j].radius > right;
    if (free) svg.text(left, nodes[i].y + 4, "share", text);
  }
}

}  // namespace

std::vector<double> path_shares(const ChoiceTree& tree) {
  if (!tree.calibration || tree.calibration->num_positions <= 0) return {};
  std::map<RankPath, double> share_of;
  for (const PathCount& each : tree.calibration->path_counts)
    share_of[each.path] =
        static_cast<double>(each.count) / static_cast<double>(tree.calibration->num_positions);
  std::vector<double> shares{1.0};
  for (const RankPath& path : tree.paths) {
    const auto found = share_of.find(path);
    shares.push_back(found == share_of.end() ? 0 : std::clamp(found->second, 0.0, 1.0));
  }
  return shares;
}

std::string draw_tree(const ChoiceTree& tree, double width, bool upright) {
  const TreeShape shape = tree.shape();
  const TreeLayout layout = lay_out_tree(shape.parents);
  const Geometry g = make_geometry(layout, tree.depth(), width, upright);
  const std::vector<double> shares = path_shares(tree);
  const std::vector<Node> nodes = place_nodes(shape, layout, g, shares);

  Svg svg(g.width, g.height,
          fmt::format("Choice tree of {} nodes, {} levels deep", tree.num_nodes(), tree.depth()));
  draw_levels(svg, shape, g, tree.depth());
  for (size_t i = 1; i < nodes.size(); ++i)
    draw_edge(svg, g, nodes[i], nodes[static_cast<size_t>(shape.parents[i])],
              shares.empty() ? 0.05 : shares[i]);
  svg.circle(nodes[0].x, nodes[0].y, 10, "node-root", "the last emitted token");
  for (size_t i = 1; i < nodes.size(); ++i) {
    const std::string share =
        shares.empty() ? "" : ": right at " + percent(shares[i]) + " of the positions";
    draw_node(svg, nodes[i], shape.ranks[i], path_text(tree.paths[i - 1]) + share);
  }
  if (upright && !shares.empty()) draw_shares(svg, shape, shares, nodes, g.width);
  return svg.finish();
}

}  // namespace medusa
