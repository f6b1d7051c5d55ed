#include "base/formats/zip_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/formats/zip_layout.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Bytes = std::span<const uint8_t>;

[[noreturn]] void refuse_zip(const fs::path& path, const std::string& found_and_expected) {
  throw UserError(fmt::format("{}: {}; copy or download the file again, or choose another",
                              path.string(), found_and_expected));
}

/// Reads little-endian numbers at places that are checked.
class ZipReader {
 public:
  ZipReader(const fs::path& path, Bytes bytes) : path_(path), bytes_(bytes) {}

  uint64_t number(uint64_t at, size_t size) const {
    const Bytes raw = slice(at, size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{raw[i]} << (8 * i);
    return value;
  }
  Bytes slice(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at)
      refuse_zip(path_, fmt::format("the zip archive points to bytes {} to {}, the file has {}", at,
                                    at + size, bytes_.size()));
    return bytes_.subspan(static_cast<size_t>(at), static_cast<size_t>(size));
  }
  size_t size() const { return bytes_.size(); }
  const fs::path& path() const { return path_; }

 private:
  const fs::path& path_;
  Bytes bytes_;
};

struct Directory {
  uint64_t begin = 0, bytes = 0, count = 0;
};

/// The end record stands last, before a comment of at most 65,535 bytes.
uint64_t find_end(const ZipReader& in) {
  constexpr uint64_t kMostComment = 0xffff;
  if (in.size() >= zip::kEndBytes) {
    const uint64_t last = in.size() - zip::kEndBytes;
    for (uint64_t back = 0; back <= std::min(last, kMostComment); ++back)
      if (in.number(last - back, 4) == zip::kEndOfDirectory) return last - back;
  }
  refuse_zip(in.path(),
             "has no list of members at its end, expected a zip archive: it is cut short or "
             "something else");
}

Directory find_directory(const ZipReader& in) {
  const uint64_t end = find_end(in);
  Directory out{in.number(end + 16, 4), in.number(end + 12, 4), in.number(end + 10, 2)};
  if (end < zip::kWideEndLocatorBytes) return out;
  const uint64_t locator = end - zip::kWideEndLocatorBytes;
  if (in.number(locator, 4) != zip::kWideEndLocator) return out;
  const uint64_t wide = in.number(locator + 8, 8);
  if (in.number(wide, 4) != zip::kWideEnd)
    refuse_zip(in.path(),
               fmt::format("has no end record at byte {}, expected it there as the archive "
                           "says",
                           wide));
  return {in.number(wide + 48, 8), in.number(wide + 40, 8), in.number(wide + 32, 8)};
}

struct Entry {
  std::string name;
  uint64_t stored = 0, size = 0, header = 0;  // bytes, bytes, place of the local header
  uint32_t checksum = 0;
  uint64_t next = 0;  // where the entry after it begins
};

/// Sizes of 64 bits stand in an extra field, each only where its 32 bits are all ones.
void read_wide_sizes(const ZipReader& in, uint64_t at, uint64_t bytes, Entry& entry) {
  const uint64_t end = at + bytes;
  while (at + 4 <= end) {
    const uint64_t kind = in.number(at, 2), size = in.number(at + 2, 2);
    at += 4;
    if (kind == zip::kWideExtra) {
      uint64_t place = at;
      for (uint64_t* field : {&entry.size, &entry.stored, &entry.header})
        if (*field == zip::kSeeWide && place + 8 <= at + size) {
          *field = in.number(place, 8);
          place += 8;
        }
    }
    at += size;
  }
}

Entry read_entry(const ZipReader& in, uint64_t at) {
  if (in.number(at, 4) != zip::kDirectoryEntry)
    refuse_zip(in.path(),
               fmt::format("has no list entry at byte {}, expected a zip archive's", at));
  const uint64_t flags = in.number(at + 8, 2), method = in.number(at + 10, 2);
  const uint64_t name_bytes = in.number(at + 28, 2), extra_bytes = in.number(at + 30, 2);
  const uint64_t name_at = at + zip::kDirectoryEntryBytes;
  const Bytes name = in.slice(name_at, name_bytes);
  Entry entry{{name.begin(), name.end()},
              in.number(at + 20, 4),
              in.number(at + 24, 4),
              in.number(at + 42, 4),
              static_cast<uint32_t>(in.number(at + 16, 4)),
              name_at + name_bytes + extra_bytes + in.number(at + 32, 2)};
  read_wide_sizes(in, name_at + name_bytes, extra_bytes, entry);
  if (method != 0 || (flags & 1U) != 0 || entry.stored != entry.size)
    refuse_zip(in.path(),
               fmt::format("member '{}' is compressed or encrypted, expected members stored "
                           "as they are, as torch.save writes them",
                           entry.name));
  return entry;
}

Bytes member_bytes(const ZipReader& in, const Entry& entry) {
  if (in.number(entry.header, 4) != zip::kLocalHeader)
    refuse_zip(in.path(),
               fmt::format("member '{}' does not begin at byte {}, expected it there as the "
                           "archive's list says",
                           entry.name, entry.header));
  const uint64_t names = in.number(entry.header + 26, 2) + in.number(entry.header + 28, 2);
  return in.slice(entry.header + zip::kLocalHeaderBytes + names, entry.size);
}

}  // namespace

ZipFile::ZipFile(const fs::path& path) : file_(path) {
  constexpr uint64_t kMostMembers = 100'000;  // a model has some hundred tensors
  const ZipReader in(path, file_.bytes());
  const Directory directory = find_directory(in);
  in.slice(directory.begin, directory.bytes);  // lies inside the file
  if (directory.count > kMostMembers)
    refuse_zip(path,
               fmt::format("has {} members, expected at most {}", directory.count, kMostMembers));
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const Entry entry = read_entry(in, at);
    if (!members_.emplace(entry.name, Member{member_bytes(in, entry), entry.checksum}).second)
      refuse_zip(path, fmt::format("member '{}' is listed twice, expected each once", entry.name));
    at = entry.next;
  }
}

Bytes ZipFile::read(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end())
    refuse_zip(path(),
               fmt::format("has no member '{}', expected it among its {}", name, members_.size()));
  if (zip::checksum(found->second.bytes) != found->second.checksum)
    refuse_zip(path(),
               fmt::format("member '{}' does not have its checksum, expected bytes as they were "
                           "written",
                           name));
  return found->second.bytes;
}

}  // namespace medusa
