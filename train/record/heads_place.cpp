#include "train/record/heads_place.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/replace_folder.h"
#include "heads/heads_checkpoint.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// Of the heads that are there; nothing if there are none, or such as cannot be read.
std::optional<HeadsManifest> manifest_at(const fs::path& folder) {
  if (!folder_is_done(folder)) return std::nullopt;
  try {
    return read_heads_manifest(folder);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// Whether a manifest that cannot be read as one says that its heads were imported, or says nothing
/// at all.
bool may_be_imported(const fs::path& folder) {
  const fs::path file = folder / "manifest.yaml";
  if (!fs::exists(file)) return false;
  std::ifstream in(file);
  if (!in) return true;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("source:")) return line != "source: \"\"";
  return false;
}

}  // namespace

bool holds_imported_heads(const fs::path& folder) {
  const auto manifest = manifest_at(folder);
  return manifest && !manifest->source.empty();
}

void check_not_imported(const fs::path& folder) {
  const auto manifest = manifest_at(folder);
  if (!manifest && folder_is_done(folder) && may_be_imported(folder))
    throw UserError(fmt::format(
        "{}: holds heads whose manifest.yaml cannot be read, and that may have been imported, "
        "expected heads of this training or nothing there, since they would be replaced; name "
        "another place with --heads FOLDER, or move them away",
        folder.string()));
  if (!manifest || manifest->source.empty()) return;
  throw UserError(fmt::format(
      "{}: holds heads that were imported ({}), expected heads of this training or nothing there, "
      "since they would be replaced; medusa distill and medusa calibrate make their tree; to train "
      "others name another place with --heads FOLDER",
      folder.string(), manifest->source));
}

std::string identity_of_heads_at(const fs::path& folder) {
  if (!folder_is_done(folder)) return "";
  const auto manifest = manifest_at(folder);
  return manifest ? manifest->fingerprint : kUnreadableHeads;
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
      "replaced; name another place with --heads FOLDER, move them away, or say --fresh if they "
      "are the run's own",
      folder.string(),
      manifest ? "heads that another training made" : "heads that cannot be read"));
}

}  // namespace medusa
