// The lock of the commands that make or continue a folder of a run: two at once would write into
// each other's. A command that writes one file whole (calibrate, build-store, report, ...) needs
// none.
#pragma once

#include <string>

#include "base/folder_lock.h"
#include "tools/run/run_config.h"

namespace medusa {

/// Holds the run's folder while it lives. Removes the temporary files that commands which were
/// killed left in it, and ends what they were about to put in place.
/// @param command  "medusa train".
/// @throws UserError  another command holds it; the folder cannot be written.
FolderLock lock_run(const RunConfig& config, const std::string& command);

}  // namespace medusa
