// Shared texts: what followed the text's last tokens in answers that the same process has finished,
// for whomever. A store that grows while the server runs, where retrieval's is a file.
#pragma once

#include "base/fields.h"
#include "infer/drafter.h"
#include "infer/drafters/looked_up_tree.h"
#include "infer/drafters/shared_texts.h"

namespace medusa {

struct SharedConfig {
  int32_t max_match = 16;
  int32_t nodes = 32;
  int32_t megabytes = 64;  // 10^6 bytes

  template <typename Fields>
  void fields(Fields& f) {
    f("max_match", max_match, "longest run of last tokens that is looked up",
      between(SharedTexts::kKeyTokens, 256));
    f("nodes", nodes, "most nodes of the tree, the root included", between(2, 64));
    f("megabytes", megabytes, "most megabytes of finished answers that are kept",
      between(1, 100000));
  }
  void validate() const {}
};

/// Reads the last max_match tokens alone. Texts whose tokens stood count as used.
class SharedDrafter : public Drafter {
 public:
  /// @param texts  kept by reference; must outlive this.
  SharedDrafter(SharedTexts& texts, const SharedConfig& config) : texts_(texts), config_(config) {}

  CandidateTree propose(const DraftContext& context, const Random& random) override;
  void observe(const CandidateTree& tree, const TargetOutput& output,
               const Acceptance& accepted) override;

 private:
  SharedTexts& texts_;
  SharedConfig config_;
  LookedUpTree<SharedTexts> proposed_;  // in the last step
};

}  // namespace medusa
