// The tree of what followed the last tokens in other texts: the heaviest paths of a trie. For the
// drafters over text_store.h and shared_texts.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "infer/drafters/match_confidence.h"
#include "infer/tree_builder.h"

namespace medusa {

/// A node of the trie that is not in the tree yet.
template <typename Texts>
struct TrieBranch {
  int32_t parent = 0;  // node of the tree
  int32_t order = 0;   // when it was found
  typename Texts::Next next;
  double confidence = 0;
};

/// A tree, and where each node's path was found.
template <typename Texts>
struct LookedUpTree {
  CandidateTree tree;
  std::vector<typename Texts::Places> places;  // [N]
};

/// What followed a run is a trie whose nodes weigh as often as texts went on like that; the
/// heaviest ones are the tree, of equally heavy ones the nearer to the root, then the lower token.
/// @param texts      continuations() of a run's places.
/// @param run        places of the text's last tokens.
/// @param max_nodes  of the tree, besides the context's limits.
template <typename Texts>
LookedUpTree<Texts> looked_up_tree(const Texts& texts, typename Texts::Places run,
                                   const DraftContext& context, int32_t max_nodes) {
  using Branch = TrieBranch<Texts>;
  const auto lighter = [](const Branch& a, const Branch& b) {
    const int64_t x = a.next.places.count(), y = b.next.places.count();
    return x != y ? x < y : a.order > b.order;
  };
  TreeBuilder tree(context);
  std::vector<typename Texts::Places> places;
  std::vector<Branch> open;  // a heap
  int32_t found = 0;
  const auto open_children = [&](int32_t node, const typename Texts::Places& of) {
    auto all = texts.continuations(of);
    const auto distinct = std::ssize(all);
    for (auto& next : all) {
      const double confidence = match_confidence(
          {of.length, next.places.count(), of.count(), distinct}, kTrustInOtherTexts);
      open.push_back({node, found++, std::move(next), confidence});
      std::push_heap(open.begin(), open.end(), lighter);
    }
  };
  open_children(0, run);
  places.push_back(std::move(run));
  while (!open.empty() && !tree.full() && tree.size() < max_nodes) {
    std::pop_heap(open.begin(), open.end(), lighter);
    Branch branch = std::move(open.back());
    open.pop_back();
    const int32_t node = tree.child(branch.parent, branch.next.token);
    if (node < 0) continue;  // too deep
    tree.set_confidence(node, branch.confidence);
    open_children(node, branch.next.places);
    places.push_back(std::move(branch.next.places));
  }
  return {std::move(tree).take(), std::move(places)};
}

}  // namespace medusa
