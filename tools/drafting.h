// What a drafter needs, loaded as the settings ask: heads and choice tree.
#pragma once

#include <memory>
#include <string>

#include "heads/choice_tree.h"
#include "heads/head_guesser.h"
#include "infer/factory.h"
#include "tools/session.h"

namespace medusa {

struct LoadedDrafting {
  std::unique_ptr<HeadGuesser> guesser;  // null when the drafter needs none
  std::unique_ptr<TreeShape> shape;
  std::string heads;  // fingerprint
  int32_t nodes = 1;  // N

  DraftParts parts() const { return {guesser.get(), shape.get()}; }
};

/// @param infer  names the drafter; config says where heads and tree lie.
/// @throws UserError  heads or tree are missing, damaged, or do not fit the model or each other.
LoadedDrafting load_drafting(const RunConfig& config, const InferConfig& infer, const Llama& llama);

}  // namespace medusa
