#include "train/record/heads_place.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/replace_folder.h"
#include "heads/heads_checkpoint.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// Of the heads that are there; nothing if there are none, or damaged ones.
std::optional<HeadsManifest> manifest_at(const fs::path& folder) {
  if (!folder_is_done(folder)) return std::nullopt;
  try {
    return read_heads_manifest(folder);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

void check_not_imported(const fs::path& folder) {
  const auto manifest = manifest_at(folder);
  if (!manifest || manifest->source.empty()) return;
  throw UserError(fmt::format(
      "{}: holds heads that were imported ({}), expected heads of this training or nothing there, "
      "since they would be replaced; name another place with --heads FOLDER, or remove them",
      folder.string(), manifest->source));
}

std::string identity_of_heads_at(const fs::path& folder) {
  if (!folder_is_done(folder)) return "";
  const auto manifest = manifest_at(folder);
  return manifest ? manifest->fingerprint : kDamagedHeads;
}

void check_heads_place(const fs::path& folder, const std::string& training,
                       const std::string& replaceable) {
  check_not_imported(folder);
  const std::string there = identity_of_heads_at(folder);
  if (there.empty() || there == replaceable) return;
  const auto manifest = manifest_at(folder);
  if (manifest && manifest->training == training) return;
  throw UserError(fmt::format(
      "{}: holds {}, expected heads of this training or nothing there, since they would be "
      "replaced; name another place with --heads FOLDER, or remove them",
      folder.string(), manifest ? "heads that another training made" : "heads that are damaged"));
}

}  // namespace medusa
