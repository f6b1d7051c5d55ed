// Plain decoding: propose nothing. The baseline of every other drafter.
#pragma once

#include "infer/drafter.h"

namespace medusa {

class NoneDrafter : public Drafter {
 public:
  CandidateTree propose(const DraftContext& context, const Random& /*random*/) override {
    return root_only(context.tokens.back());
  }
};

}  // namespace medusa
