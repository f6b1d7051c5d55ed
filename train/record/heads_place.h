// Whose heads stand where a training puts its own: those of others are not replaced unasked.
#pragma once

#include <filesystem>
#include <string>

namespace medusa {

/// Asked before the work, which may take hours, and again before the result is saved. A place
/// without finished heads is fine, as is one with heads that this training made before: a finished
/// run saves them again.
/// @param folder       of the result.
/// @param training     what the heads' manifests say of this training (HeadsManifest::training).
/// @param replaceable  other heads that may be replaced, as identity_of_heads_at() says; empty:
///                     none. Imported ones never are.
/// @throws UserError  other heads are there.
void check_heads_place(const std::filesystem::path& folder, const std::string& training,
                       const std::string& replaceable);

/// The fingerprint of the finished heads that are there, or that they cannot be read; empty if
/// there are none.
std::string identity_of_heads_at(const std::filesystem::path& folder);

/// What that says of heads that cannot be read: damaged ones, or those of a later program.
inline constexpr const char* kUnreadableHeads = "unreadable";

/// Whether whole heads are there that were imported.
bool holds_imported_heads(const std::filesystem::path& folder);

/// The part of check_heads_place() that needs no training to be known.
/// @throws UserError  imported heads are there, or such as cannot be read and may be imported.
void check_not_imported(const std::filesystem::path& folder);

}  // namespace medusa
