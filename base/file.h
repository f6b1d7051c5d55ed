// Reading, mapping and safely replacing files. Every failure is a UserError that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace medusa {

/// Most bytes that are read into memory at once: more than any text we know of, and little enough
/// for a machine to hold. Devices without an end and files full of holes stop here.
inline constexpr size_t kMostFileBytes = size_t{1} << 30;

/// The whole file as bytes. Only of a regular file: a FIFO, socket or device may have no end, or
/// nothing to read yet; these are refused without waiting for them.
/// @param most  bytes; for formats whose files are always small.
/// @throws UserError  the file is missing, no regular one, too large, or cannot be read.
std::string read_file(const std::filesystem::path& path, size_t most = kMostFileBytes);

/// Up to so many bytes of the file's beginning.
/// @throws UserError  as read_file(), but the file may be of any size.
std::string read_beginning(const std::filesystem::path& path, size_t most);

/// read_file() for text that may come from another program: "-" is standard input, whatever that
/// is, and a FIFO is read until its last writer closes it.
/// @throws UserError    as read_file(), and of more than kMostFileBytes.
/// @throws Interrupted  SIGINT or SIGTERM came before there was something to read.
std::string read_file_or_stream(const std::filesystem::path& path);

/// Puts bytes under a name, so that it afterwards stands for the old file or the new one, never for
/// a part: they are written beside the target, flushed to the disk and renamed. A full disk or an
/// unwritable folder leaves the old file untouched, and nothing beside it. A symbolic link stays
/// and its target is replaced. A FIFO, a character device or an open file of a process
/// (/dev/stdout) is written straight into.
/// @throws UserError    the folder cannot be written, the disk is full, a limit on file sizes is
///                      reached, or something has the name that is none of these.
/// @throws Interrupted  SIGINT or SIGTERM came before a FIFO had a reader.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same for bytes that lie in several places: the parts one after the other.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);

/// The same for a writer of its own: write(descriptor) writes the bytes; if it throws, the old file
/// stays.
void replace_file(const std::filesystem::path& path, const std::function<void(int)>& write);

/// Whether write_file() writes straight into what has the name.
/// @throws UserError  a folder, a socket or a block device has it, or it cannot be looked up.
bool is_written_into(const std::filesystem::path& path);

/// Where a name leads: its last part is no symbolic link any more. Nothing needs to be there.
/// @throws UserError  links in a circle.
std::filesystem::path follow_links(std::filesystem::path path);

/// Makes the folder and its parents.
/// @throws UserError  it cannot be made or written to, or something else has the name.
void make_folder(const std::filesystem::path& path);

/// Makes renames in the folder durable, as far as the file system can.
/// @param folder  empty: the current one.
void flush_folder(const std::filesystem::path& folder);

/// Writes all bytes to an open file descriptor, which may be a non-blocking one. name stands in the
/// error message.
/// @throws UserError    the disk is full, or the write failed for another reason.
/// @throws Interrupted  SIGINT or SIGTERM came while a non-blocking one took nothing.
void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& name);

/// Lets go of the memory behind mapped bytes that have been used; touching them again reads the
/// file again. Only whole pages inside the span are let go.
void forget_pages(std::span<const uint8_t> mapped);

/// A file mapped read-only. Movable; the bytes live as long as the object.
class MappedFile {
 public:
  /// @throws UserError  the file is missing, empty, no regular one, or cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace medusa
