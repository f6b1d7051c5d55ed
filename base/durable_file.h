// What makes a change of files outlast a power cut, for those that do more than base/file.h's
// write_file(). Every failure is a UserError that names the file.
#pragma once

#include <filesystem>

namespace medusa {

/// Makes the bytes of an open file durable, as far as the file system can. name stands in the error
/// message.
/// @throws UserError  the disk fails.
void flush_file(int descriptor, const std::filesystem::path& name);

/// Renames a file or folder within its folder, durably. What it holds must be flushed before.
/// @throws UserError  it cannot be renamed, or the disk fails.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Copies the bytes of a file as write_file() writes them.
/// @throws UserError  as write_file(), or the file cannot be read.
void copy_whole_file(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace medusa
