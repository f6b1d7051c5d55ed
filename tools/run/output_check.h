// What keeps commands from each other's files and from those that a mistyped name would cost.
//
// The lock of the commands that make or continue a folder of a run: two at once would write into
// each other's. A command that writes one file whole (calibrate, build-store, report, ...) needs
// none.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/folder_lock.h"
#include "tools/inspect/artifact_kind.h"
#include "tools/run/run_config.h"

namespace medusa {

/// Holds the run's folder while it lives. Removes the temporary files that commands which were
/// killed left in it, and ends what they were about to put in place.
/// @param command  "medusa train".
/// @throws UserError  another command holds it; the folder cannot be written.
FolderLock lock_run(const RunConfig& config, const std::string& command);

// Whether a command may write where it is told to: asked before the work, which may take hours. A
// name that somebody mistyped must not cost them a file.

/// Fine are a name that nothing has, an empty file, an earlier one of the kind, which is replaced,
/// and what write_file() writes straight into: a FIFO, a device.
/// @throws UserError  something else has the name, or its folder cannot be written to.
void check_output_file(const std::filesystem::path& file, ArtifactKind kind);

/// The tree that a command will write, of the heads that the settings name.
/// @throws UserError  as above; heads are named, the tree's place is not, and the tree there is
///                    that of the run's own heads.
void check_output_tree(const RunConfig& config);

/// The same for a kind that inspect does not tell apart.
/// @param what    for the message: "a choice tree".
/// @param is_one  whether a file that is not empty is of the kind.
void check_output_file(const std::filesystem::path& file, std::string_view what,
                       const std::function<bool(const std::filesystem::path&)>& is_one);

/// Fine is a name that nothing has, in a folder that can be written to.
/// @param option  that names it, for the message: "--output".
/// @throws UserError  as above.
void check_new_folder(const std::filesystem::path& folder, std::string_view option);

/// Fine are a name that nothing has, an empty folder and a finished one of the kind.
/// @throws UserError  as above.
void check_output_folder(const std::filesystem::path& folder, ArtifactKind kind);

}  // namespace medusa
