// The target itself, without some of its layers, as a draft model: self-speculation.
// Paper: Draft & Verify (arXiv:2309.08168).
#pragma once

#include <memory>
#include <vector>

#include "infer/backbone_target.h"
#include "infer/draft_models/draft_model.h"

namespace medusa {

/// DraftModel that shares the target's weights and cache. Drafted rows are tentative in the
/// target's slot, and the target's own pass writes over them with all layers; so nothing is kept
/// and nothing is computed twice but the draft itself.
class SkippingModel : public DraftModel {
 public:
  /// @param target  kept by reference; must outlive this.
  /// @param skip    layers that do not run; not all of them.
  SkippingModel(BackboneTarget& target, const std::vector<int64_t>& skip);

  std::unique_ptr<DraftSequence> open() override;

 private:
  class Sequence;

  BackboneTarget& target_;
  std::vector<int32_t> layers_;  // that run
};

/// @throws UserError  a layer the model does not have, one twice, or no layer left.
void check_skipped_layers(const std::vector<int64_t>& skip, int64_t num_layers);

}  // namespace medusa
