#include "train/record/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "data/tokenizer/sentencepiece/protobuf_reader.h"

namespace medusa {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr const char* kEventVersion = "brain.Event:2";

template <typename T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Fields of protobuf messages: a key of number and kind, then the value.
enum class Wire : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string key(int field, Wire wire) {
  return varint(static_cast<uint64_t>(field << 3 | static_cast<int>(wire)));
}
std::string bytes_field(int field, const std::string& bytes) {
  return key(field, Wire::Bytes) + varint(bytes.size()) + bytes;
}

/// Event: 1 wall_time (double), 2 step, 3 file_version, 5 summary.
std::string event(int64_t step, const std::string& rest) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return key(1, Wire::Fixed64) + raw(now) + key(2, Wire::Varint) +
         varint(static_cast<uint64_t>(step)) + rest;
}

/// Summary: 1 value, repeated: 1 tag, 2 simple_value (float).
std::string summary(const Scalars& scalars) {
  std::string out;
  for (const auto& [tag, number] : scalars)
    out += bytes_field(
        1, bytes_field(1, tag) + key(2, Wire::Fixed32) + raw(static_cast<float>(number)));
  return bytes_field(5, out);
}

/// The checksum as records hold it: turned and shifted, since a checksum of bytes that hold their
/// own checksum says little.
uint32_t masked_checksum(const std::string& bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

std::string record(const std::string& bytes) {
  const std::string length = raw(static_cast<uint64_t>(bytes.size()));
  return length + raw(masked_checksum(length)) + bytes + raw(masked_checksum(bytes));
}

struct FoundEvent {
  Event event;
  size_t end = 0;  // of its record, in the file
};

Event parse(std::string_view bytes, const std::string& source) {
  Event out;
  for (ProtobufReader reader(bytes, source); reader.next();) {
    if (reader.field() == 1) out.wall_time_s = reader.real();
    if (reader.field() == 2) out.step = reader.integer();
    if (reader.field() != 5) continue;
    for (ProtobufReader values(reader.bytes(), source); values.next();) {
      std::pair<std::string, double> scalar;
      for (ProtobufReader value(values.bytes(), source); value.next();) {
        if (value.field() == 1) scalar.first = value.bytes();
        if (value.field() == 2) scalar.second = value.number();
      }
      out.scalars.push_back(std::move(scalar));
    }
  }
  return out;
}

struct FoundEvents {
  std::vector<FoundEvent> whole;  // up to the first that is cut off or damaged
  std::string damage;             // what to say of that; empty: cut off, or none
};

FoundEvents find_events(const std::string& text, const std::filesystem::path& file) {
  constexpr size_t kAround = 16;  // length, its checksum, and that of the bytes
  FoundEvents out;
  const auto stop = [&](size_t at, const std::string& found) {
    out.damage = fmt::format(
        "{}: the record at byte {} {}, expected an event file of medusa train; remove it",
        file.string(), at, found);
    return out;
  };
  for (size_t at = 0; at + kAround <= text.size();) {
    uint64_t size = 0;
    std::memcpy(&size, text.data() + at, sizeof size);
    if (raw(masked_checksum(text.substr(at, 8))) != text.substr(at + 8, 4))
      return stop(at, "has another length than its checksum says");
    if (size > text.size() - at - kAround) break;  // cut off by a crash
    const std::string bytes = text.substr(at + 12, size);
    if (raw(masked_checksum(bytes)) != text.substr(at + 12 + size, 4))
      return stop(at, "has other bytes than its checksum says");
    at += kAround + size;
    out.whole.push_back({parse(bytes, file.string()), at});
  }
  return out;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const char each : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(each)) & 0xffU];
  return ~crc;
}

/// The records up to this step, at least the one of the version. What is behind a damaged one is
/// given up, as a power cut may leave anything there; so is a file that is none of ours, since
/// curves can be had from metrics.jsonl.
EventFile::Kept EventFile::records_up_to(const std::filesystem::path& file, int64_t step) {
  const Kept none{{}, record(event(0, bytes_field(3, kEventVersion)))};
  if (step <= 0 || !std::filesystem::exists(file)) return none;
  const std::string text = read_file(file);
  try {
    Kept kept;
    size_t end = 0;
    for (const FoundEvent& found : find_events(text, file).whole) {
      if (found.event.step > step) break;
      end = found.end;
      if (!found.event.scalars.empty())
        kept.reports.emplace(found.event.step, found.event.scalars[0].first);
    }
    kept.records = text.substr(0, end);
    return end > 0 ? kept : none;
  } catch (const UserError&) {
    return none;
  }
}

EventFile::EventFile(const std::filesystem::path& file, int64_t step)
    : EventFile(file, records_up_to(file, step)) {}

EventFile::EventFile(const std::filesystem::path& file, Kept kept)
    : kept_(std::move(kept.reports)), file_(file, kept.records) {}

void EventFile::add(int64_t step, const Scalars& scalars) {
  if (!kept_.contains({step, scalars.at(0).first}))
    file_.add(record(event(step, summary(scalars))));
}

std::vector<Event> read_event_file(const std::filesystem::path& file) {
  std::vector<Event> out;
  FoundEvents found_all = find_events(read_file(file), file);
  if (!found_all.damage.empty()) throw UserError(found_all.damage);
  for (FoundEvent& found : found_all.whole) out.push_back(std::move(found.event));
  return out;
}

}  // namespace medusa
