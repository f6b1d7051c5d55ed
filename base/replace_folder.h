// A folder of files that is complete or absent.
#pragma once

#include <filesystem>
#include <functional>

namespace medusa {

/// write(temporary folder) makes the files; then a file DONE, which lists them, is added and the
/// folder takes its place. Afterwards the old folder or the new one is there, whole. If write
/// throws, the old one stays and the temporary folder, NAME.partial, is removed; what an earlier
/// crash left of one is removed first. A symbolic link stays and its target is replaced.
/// @throws UserError  the parent cannot be written, or check_replaceable() throws.
void replace_folder(const std::filesystem::path& folder,
                    const std::function<void(const std::filesystem::path&)>& write);

/// The same for a folder that nothing has the place of yet, and that gets no DONE: what is in it
/// says that it is whole.
/// @throws UserError  something is there, or it cannot be written.
void create_folder(const std::filesystem::path& folder,
                   const std::function<void(const std::filesystem::path&)>& write);

/// For before the work that the folder is to hold.
/// @throws UserError  something has the name that replace_folder() must not remove: no folder, one
///                    that holds something and was not finished by it (no DONE), or one that holds
///                    what DONE does not list; where it lists nothing, a folder.
void check_replaceable(const std::filesystem::path& folder);

/// Removes a folder so that a kill or a power cut leaves it whole or absent: it is renamed to
/// NAME.partial first. Nothing needs to be there.
/// @throws UserError  it cannot be renamed.
void remove_folder(const std::filesystem::path& folder);

/// Ends what a kill interrupted. Where the file system cannot swap two names, a folder that is
/// gone, with the finished new one beside it under its temporary name, or only the old one, gets
/// that. What else has a temporary name is removed.
void finish_replacement(const std::filesystem::path& folder);

/// True when the folder was finished: DONE is there.
bool folder_is_done(const std::filesystem::path& folder);

}  // namespace medusa
