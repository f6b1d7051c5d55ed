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

/// The whole file as bytes.
/// @throws UserError  the file is missing, a folder, or cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes beside the target, flushes to the disk and renames: afterwards the file is the old one or
/// the new one, never a part. A full disk or an unwritable folder leaves the old file untouched.
/// @throws UserError  the folder cannot be written or the disk is full.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same for bytes that lie in several places: the parts one after the other.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);

/// The same for a writer that opens the file itself: write(temporary path) makes the file, which is
/// then flushed and renamed to path; if write throws, the temporary file is removed.
void replace_file(const std::filesystem::path& path,
                  const std::function<void(const std::filesystem::path&)>& write);

/// Makes the folder and its parents.
/// @throws UserError  it cannot be made or written to, or something else has the name.
void make_folder(const std::filesystem::path& path);

/// Writes all bytes to an open file descriptor. name stands in the error message.
/// @throws UserError  the disk is full, or the write failed for another reason.
void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& name);

/// Lets go of the memory behind mapped bytes that have been used; touching them again reads the
/// file again. Only whole pages inside the span are let go.
void forget_pages(std::span<const uint8_t> mapped);

/// A file mapped read-only. Movable; the bytes live as long as the object.
class MappedFile {
 public:
  /// @throws UserError  the file is missing, empty, a folder, or cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace medusa
