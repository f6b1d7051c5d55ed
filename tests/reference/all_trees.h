// The best choice tree by trying every one: the slow twin of heads/tree_search for tiny sizes.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "heads/head_statistics.h"
#include "heads/tree/choice_tree.h"

namespace medusa::reference {

/// Tokens per step of a tree, position by position: the walk goes down while the true rank is
/// listed.
inline double tokens_per_step(const HeadStatistics& statistics, const std::set<RankPath>& tree) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < statistics.num_positions(); ++i) {
    RankPath path;
    ++tokens;
    for (const int16_t rank : statistics.ranks(i)) {
      path.push_back(rank);
      if (!tree.contains(path)) break;
      ++tokens;
    }
  }
  return static_cast<double>(tokens) / static_cast<double>(statistics.num_positions());
}

/// The most tokens per step of any tree with num_paths paths below the root.
inline double best_of_all_trees(const HeadStatistics& statistics, size_t num_paths) {
  std::set<std::set<RankPath>> trees{{}};
  for (size_t size = 0; size < num_paths; ++size) {  // every tree with one path more
    std::set<std::set<RankPath>> larger;
    for (const auto& tree : trees) {
      std::set<RankPath> prefixes = tree;
      prefixes.insert(RankPath{});
      for (const RankPath& prefix : prefixes) {
        if (static_cast<int64_t>(prefix.size()) == statistics.num_heads()) continue;
        for (int32_t rank = 0; rank < statistics.top_k(); ++rank) {
          std::set<RankPath> grown = tree;
          RankPath path = prefix;
          path.push_back(rank);
          if (grown.insert(path).second) larger.insert(grown);
        }
      }
    }
    trees = std::move(larger);
  }
  double best = 0;
  for (const auto& tree : trees) best = std::max(best, tokens_per_step(statistics, tree));
  return best;
}

}  // namespace medusa::reference
