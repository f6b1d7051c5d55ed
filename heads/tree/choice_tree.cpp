#include "heads/tree/choice_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"

namespace medusa {
namespace {

/// Refuses ranks that no head can give.
void check_ranks(const RankPath& path, int32_t top_k, const std::string& place) {
  if (path.empty())
    throw UserError(fmt::format(
        "{}: an empty path is listed, expected draft ranks like [0, 1]; remove it (the root is "
        "always there)",
        place));
  for (const int32_t rank : path) {
    if (rank < 0)
      throw UserError(
          fmt::format("{}: path {} has the rank {}, expected ranks from 0; mend the path", place,
                      path_text(path), rank));
    if (rank >= top_k)
      throw UserError(
          fmt::format("{}: path {} has the rank {}, expected ranks below top_k, which is {}; raise "
                      "top_k or remove the path",
                      place, path_text(path), rank, top_k));
  }
}

int32_t largest_rank(const std::vector<RankPath>& paths) {
  int32_t largest = 0;
  for (const RankPath& path : paths)
    for (const int32_t rank : path) largest = std::max(largest, rank);
  return largest;
}

}  // namespace

bool comes_before(const RankPath& a, const RankPath& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

std::string path_text(const RankPath& path) { return fmt::format("[{}]", fmt::join(path, ", ")); }

ChoiceTree make_choice_tree(std::vector<RankPath> paths, int32_t top_k, const std::string& where) {
  return make_choice_tree(std::move(paths), top_k, [&](size_t) { return where; });
}

ChoiceTree make_choice_tree(std::vector<RankPath> paths, int32_t top_k,
                            const std::function<std::string(size_t)>& place) {
  ChoiceTree tree;
  tree.top_k = top_k == 0 ? largest_rank(paths) + 1 : top_k;
  std::map<RankPath, size_t> seen;  // path -> its index as given
  for (size_t i = 0; i < paths.size(); ++i) {
    check_ranks(paths[i], tree.top_k, place(i));
    if (!seen.emplace(paths[i], i).second)
      throw UserError(
          fmt::format("{}: path {} is listed twice, expected each path once; remove one of them",
                      place(i), path_text(paths[i])));
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    const RankPath prefix(paths[i].begin(), paths[i].end() - 1);
    if (!prefix.empty() && !seen.contains(prefix))
      throw UserError(
          fmt::format("{}: path {} is listed but its prefix {} is not; add it or remove the path",
                      place(i), path_text(paths[i]), path_text(prefix)));
  }
  std::sort(paths.begin(), paths.end(), comes_before);
  tree.paths = std::move(paths);
  return tree;
}

int32_t ChoiceTree::depth() const {
  return paths.empty() ? 0 : static_cast<int32_t>(paths.back().size());  // node order: deepest last
}

/// [N] or empty: a path was not counted, or the tree is not calibrated.
std::vector<double> accept_probs_of(const ChoiceTree& tree) {
  if (!tree.calibration || tree.calibration->num_positions == 0) return {};
  std::map<RankPath, int64_t> counts;
  for (const PathCount& each : tree.calibration->path_counts) counts[each.path] = each.count;
  std::vector<double> accept_probs{1};
  for (const RankPath& path : tree.paths) {
    const auto found = counts.find(path);
    if (found == counts.end()) return {};
    accept_probs.push_back(static_cast<double>(found->second) /
                           static_cast<double>(tree.calibration->num_positions));
  }
  return accept_probs;
}

TreeShape ChoiceTree::shape() const {
  TreeShape shape{{0}, {-1}, {-1}, {{0}}, {}, temperatures, accept_probs_of(*this)};
  std::map<RankPath, int32_t> nodes{{RankPath{}, 0}};
  std::vector<bool> has_child(paths.size() + 1, false);
  for (const RankPath& path : paths) {
    const auto node = static_cast<int32_t>(nodes.size());
    const auto parent = nodes.find(RankPath(path.begin(), path.end() - 1));
    MEDUSA_ASSERT(parent != nodes.end(), path_text(path));
    nodes.emplace(path, node);
    has_child[static_cast<size_t>(parent->second)] = true;
    shape.depths.push_back(static_cast<int32_t>(path.size()));
    shape.parents.push_back(parent->second);
    shape.ranks.push_back(path.back());
    shape.ancestors.push_back(shape.ancestors[static_cast<size_t>(parent->second)]);
    shape.ancestors.back().push_back(node);
  }
  for (size_t node = 0; node < has_child.size(); ++node)
    if (!has_child[node]) shape.leaves.push_back(shape.ancestors[node]);
  return shape;
}

void check_tree_fits(const ChoiceTree& tree, int64_t num_heads, const std::string& heads,
                     const std::filesystem::path& file) {
  if (tree.depth() > num_heads)
    throw UserError(
        fmt::format("{}: path {} needs {} heads, the heads have {}; remove the deeper paths or "
                    "train more heads",
                    file.string(), path_text(tree.paths.back()), tree.depth(), num_heads));
  if (!tree.heads.empty() && tree.heads != heads)
    throw UserError(fmt::format(
        "{}: measured on the heads {}, these heads are {}, expected the same; calibrate again, "
        "with --tree FILE where these heads are others than the run's own, or pass the other heads",
        file.string(), short_fingerprint(tree.heads), short_fingerprint(heads)));
  const auto num_temperatures = static_cast<int64_t>(tree.temperatures.size());
  if (num_temperatures != 0 && num_temperatures != num_heads)
    throw UserError(
        fmt::format("{}: 'temperatures' has {} numbers, expected one for each of {} heads; "
                    "calibrate again or remove the line",
                    file.string(), num_temperatures, num_heads));
}

}  // namespace medusa
