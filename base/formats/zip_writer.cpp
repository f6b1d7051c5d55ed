// Writing zip archives.
#include <string>
#include <vector>

#include "base/check.h"
#include "base/formats/zip_file.h"
#include "base/formats/zip_layout.h"

namespace medusa {
namespace {

constexpr uint64_t kAlignment = 64;      // bytes
constexpr uint16_t kVersionNeeded = 45;  // the first with sizes of 64 bits
constexpr uint16_t kUtf8Names = 1U << 11;
constexpr uint16_t kFirstDay = 0x21;  // 1980-01-01: the same members give the same bytes

void put(std::string& out, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) out += static_cast<char>((value >> (8 * i)) & 0xffU);
}

uint32_t narrow(uint64_t value) {
  return value >= zip::kSeeWide ? zip::kSeeWide : static_cast<uint32_t>(value);
}

/// A member and where it lies.
struct Placed {
  const ZipMember* member = nullptr;
  uint64_t size = 0, header = 0;
  uint32_t checksum = 0;
  bool wide() const { return size >= zip::kSeeWide || header >= zip::kSeeWide; }
};

Placed place(const ZipMember& member, uint64_t header) {
  MEDUSA_ASSERT(member.name.size() <= 0xffff, member.name.size());
  Placed out{&member, 0, header, 0};
  for (const std::string_view part : member.parts) {
    out.size += part.size();
    out.checksum =
        zip::checksum({reinterpret_cast<const uint8_t*>(part.data()), part.size()}, out.checksum);
  }
  return out;
}

/// What the local header and the list entry have in common, from the version on.
void put_common(std::string& out, const Placed& placed, bool wide, uint64_t extra_bytes) {
  put(out, kVersionNeeded, 2);
  put(out, kUtf8Names, 2);
  put(out, 0, 2);  // stored as it is
  put(out, 0, 2);  // time
  put(out, kFirstDay, 2);
  put(out, placed.checksum, 4);
  put(out, wide ? zip::kSeeWide : placed.size, 4);
  put(out, wide ? zip::kSeeWide : placed.size, 4);
  put(out, placed.member->name.size(), 2);
  put(out, extra_bytes, 2);
}

std::string local_header(const Placed& placed) {
  std::string extra;
  if (placed.wide()) {
    put(extra, zip::kWideExtra, 2);
    put(extra, 16, 2);
    put(extra, placed.size, 8);
    put(extra, placed.size, 8);
  }
  const uint64_t name_bytes = placed.member->name.size();
  const uint64_t data =
      placed.header + zip::kLocalHeaderBytes + name_bytes + extra.size() + 4;  // 4: padding's own
  const uint64_t padding = (kAlignment - data % kAlignment) % kAlignment;
  put(extra, zip::kPaddingExtra, 2);
  put(extra, padding, 2);
  extra.append(static_cast<size_t>(padding), 'Z');
  std::string out;
  put(out, zip::kLocalHeader, 4);
  put_common(out, placed, placed.wide(), extra.size());
  return out + placed.member->name + extra;
}

std::string directory_entry(const Placed& placed) {
  std::string extra;
  if (placed.wide()) {
    put(extra, zip::kWideExtra, 2);
    put(extra, 24, 2);
    for (const uint64_t value : {placed.size, placed.size, placed.header}) put(extra, value, 8);
  }
  std::string out;
  put(out, zip::kDirectoryEntry, 4);
  put(out, kVersionNeeded, 2);  // made by
  put_common(out, placed, placed.wide(), extra.size());
  put(out, 0, 2);  // comment
  put(out, 0, 2);  // disk
  put(out, 0, 2);  // attributes
  put(out, 0, 4);
  put(out, placed.wide() ? zip::kSeeWide : placed.header, 4);
  return out + placed.member->name + extra;
}

/// @param begin  place of the list; its end records follow it.
std::string end_records(uint64_t begin, uint64_t bytes, uint64_t count) {
  std::string out;
  put(out, zip::kWideEnd, 4);
  put(out, zip::kWideEndBytes - 12, 8);  // bytes after this number
  put(out, kVersionNeeded, 2);
  put(out, kVersionNeeded, 2);
  put(out, 0, 8);  // disks
  for (const uint64_t value : {count, count, bytes, begin}) put(out, value, 8);
  put(out, zip::kWideEndLocator, 4);
  put(out, 0, 4);
  put(out, begin + bytes, 8);
  put(out, 1, 4);
  put(out, zip::kEndOfDirectory, 4);
  put(out, 0, 4);
  for (int i = 0; i < 2; ++i) put(out, count >= 0xffff ? 0xffff : count, 2);
  put(out, narrow(bytes), 4);
  put(out, narrow(begin), 4);
  put(out, 0, 2);
  return out;
}

/// An archive as pieces, most of which are the members' own.
struct Pieces {
  explicit Pieces(std::span<const ZipMember> members);
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  std::vector<std::string> headers;
  std::string directory;
  std::vector<std::string_view> parts;  // point into the others
};

Pieces::Pieces(std::span<const ZipMember> members) {
  headers.reserve(members.size());
  uint64_t at = 0;
  for (const ZipMember& member : members) {
    const Placed placed = place(member, at);
    headers.push_back(local_header(placed));
    parts.emplace_back(headers.back());
    parts.insert(parts.end(), member.parts.begin(), member.parts.end());
    at += headers.back().size() + placed.size;
    directory += directory_entry(placed);
  }
  directory += end_records(at, directory.size(), members.size());
  parts.emplace_back(directory);
}

}  // namespace

void write_zip(const std::filesystem::path& path, std::span<const ZipMember> members) {
  write_file(path, Pieces(members).parts);
}

std::string zip_bytes(std::span<const ZipMember> members) {
  const Pieces pieces(members);
  std::string out;
  for (const std::string_view part : pieces.parts) out += part;
  return out;
}

}  // namespace medusa
