// A folder of files that is complete or absent.
#pragma once

#include <filesystem>
#include <functional>

namespace medusa {

/// write(temporary folder) makes the files; then a file DONE is added and the folder takes its
/// place. Afterwards the old folder or the new one is there, whole. If write throws, the old one
/// stays and the temporary folder is removed; what an earlier crash left of one is removed first.
/// @throws UserError  the parent cannot be written, or something that is not a folder has the name.
void replace_folder(const std::filesystem::path& folder,
                    const std::function<void(const std::filesystem::path&)>& write);

/// True when the folder was finished: DONE is there.
bool folder_is_done(const std::filesystem::path& folder);

}  // namespace medusa
