// Retrieval drafting: what followed the text's last tokens in a store of other texts is proposed.
// He et al., "REST: Retrieval-Based Speculative Decoding" (arXiv:2311.08252) §3.2; ours has no
// limit on the places that are looked at, as sorted suffixes need not be looked at one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "infer/drafter.h"
#include "infer/drafters/text_store.h"

namespace medusa {

struct RetrievalConfig {
  std::optional<std::string> store;
  int32_t max_match = 16;
  int32_t min_match = 2;
  int32_t nodes = 32;

  template <typename Fields>
  void fields(Fields& f) {
    f("store", store, "file that medusa build-store wrote; null: the run's own");
    f("max_match", max_match, "longest run of last tokens that is looked up", between(1, 256));
    f("min_match", min_match, "shortest such run; one token alone is often a false match",
      between(1, 256));
    f("nodes", nodes, "most nodes of the tree, the root included", between(2, 64));
  }
  /// @throws UserError  min_match is above max_match.
  void validate() const;
};

/// Reads the last max_match tokens alone, and keeps no state.
class RetrievalDrafter : public Drafter {
 public:
  /// @param store  kept by reference; must outlive this.
  RetrievalDrafter(const TextStore& store, const RetrievalConfig& config)
      : store_(store), config_(config) {}

  /// The longest run of last tokens that the store holds decides (looked_up_tree.h).
  CandidateTree propose(const DraftContext& context, const Random& random) override;

 private:
  TextStore::Places longest_match(std::span<const TokenId> tokens) const;

  const TextStore& store_;
  RetrievalConfig config_;
};

}  // namespace medusa
