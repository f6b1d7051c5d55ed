// The Medusa drafter: the choice tree filled with the heads' top-k drafts.
// Paper: Medusa (arXiv:2401.10774) §2.1.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/fields.h"
#include "heads/heads_runner.h"
#include "heads/tree/choice_tree.h"
#include "infer/drafter.h"

namespace medusa {

class PathDrafts;

struct MedusaConfig {
  std::optional<bool> adaptive{};
  bool dynamic = false;
  std::optional<int32_t> nodes;

  template <typename Fields>
  void fields(Fields& f) {
    f("adaptive", adaptive,
      "use the part of the choice tree that pays on the text so far, down to plain decoding (true) "
      "or always all of it (false); null: a part of it where several texts share the steps of the "
      "CPU that calibrated it and the rule is greedy or match",
      Rule<bool>{"true | false", [](bool) { return true; }});
    f("dynamic", dynamic,
      "propose the most probable paths of each step (true) or those of the choice tree (false)");
    f("nodes", nodes,
      "size of a dynamic tree, the root included; null: as many as the choice tree has",
      between(2, 64));
  }
  /// @throws UserError  nodes without a dynamic tree; a tree that is both.
  void validate() const;
};

/// Node [r0, r1, …] of the choice tree is head 0's draft of rank r0, then head 1's of rank r1, …,
/// after those before it. The heads draft all nodes of one depth together.
/// A step near the end of the text or of the cache uses the part of the tree that still fits. Only
/// the heads that this part reads are computed.
class MedusaDrafter : public Drafter {
 public:
  /// @param runner, shape  kept by reference; must outlive this. The shape's ranks are below the
  ///                       runner's top_k and its depths at most its number of heads.
  MedusaDrafter(HeadsRunner& runner, const TreeShape& shape) : runner_(runner), shape_(shape) {}

  /// Only the root where there is no state yet (a prompt of one token).
  CandidateTree propose(const DraftContext& context, const Random& random) override;

 private:
  void fill_depth(size_t begin, size_t end, PathDrafts& drafts, CandidateTree& tree);

  HeadsRunner& runner_;
  const TreeShape& shape_;
  std::vector<TokenId> paths_;  // [M, depth] scratch
};

}  // namespace medusa
