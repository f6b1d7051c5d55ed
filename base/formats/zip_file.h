// Zip archives whose members are stored as they are, without compression: what torch.save writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace medusa {

/// A mapped archive. Members point into it and live as long as it does.
///
/// Thread safety: const calls may run at the same time.
class ZipFile {
 public:
  /// Reads the list of members, at most 100,000.
  /// @throws UserError  the file is missing, is no zip archive, its list contradicts the file, or a
  ///                    member is compressed, encrypted or listed twice.
  explicit ZipFile(const std::filesystem::path& path);

  /// Where a member's bytes lie, and what their checksum should be.
  struct Member {
    std::span<const uint8_t> bytes;
    uint32_t checksum = 0;
  };

  /// By name, unchecked.
  const std::map<std::string, Member>& members() const { return members_; }

  /// A member's bytes, compared with its checksum.
  /// @throws UserError  there is none of this name, or its bytes were altered.
  std::span<const uint8_t> read(const std::string& name) const;

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  MappedFile file_;
  std::map<std::string, Member> members_;
};

struct ZipMember {
  std::string name;
  std::vector<std::string_view> parts;  // its bytes, one part after the other
};

/// Writes an archive; the file is there whole or as it was before. Every member's bytes begin at a
/// multiple of 64 bytes, so that they can be mapped. The same members give the same bytes.
/// @throws UserError  the folder cannot be written or the disk is full.
void write_zip(const std::filesystem::path& path, std::span<const ZipMember> members);

/// The bytes of that file.
std::string zip_bytes(std::span<const ZipMember> members);

}  // namespace medusa
