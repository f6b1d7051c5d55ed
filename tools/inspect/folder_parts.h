// Files that belong to a folder of ours or of a model and say little by themselves.
#pragma once

#include <string>

#include "tools/inspect/artifact_kind.h"

namespace medusa {

/// What such a file is for; null: a folder of this kind has none of this name.
/// @param name  "manifest.yaml".
const char* purpose_of_part(ArtifactKind folder, const std::string& name);

}  // namespace medusa
