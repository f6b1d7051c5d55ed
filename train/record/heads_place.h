// Whose heads stand where a training puts its own: those of others are not replaced unasked.
#pragma once

#include <filesystem>
#include <string>

namespace medusa {

/// Asked before the work, which may take hours. A place without finished heads is fine, as is one
/// with heads that this training made before: a finished run saves them again.
/// @param folder          of the result.
/// @param training        what the heads' manifests say of this training (HeadsManifest::training).
/// @param replace_others  whether trained heads may be replaced whoever made them, damaged ones
///                        included; imported ones never are.
/// @throws UserError  other heads are there.
void check_heads_place(const std::filesystem::path& folder, const std::string& training,
                       bool replace_others);

/// The part of it that needs no training to be known.
/// @throws UserError  imported heads are there.
void check_not_imported(const std::filesystem::path& folder);

}  // namespace medusa
