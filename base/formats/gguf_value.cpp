// Reads the values of metadata entries that parse_gguf() has checked.
#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "base/formats/gguf_parse.h"

namespace medusa {
namespace {

constexpr size_t kMaxDescribed = 60;  // bytes of a long text, e.g. of a chat template, to show

template <typename T>
T load(std::span<const uint8_t> raw, int64_t i) {
  T value;
  std::memcpy(&value, raw.data() + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

/// Calls use(number) with element i in its own C++ type; false if the elements are not numbers.
template <typename Use>
bool visit_number(const GgufEntry& entry, int64_t i, const Use& use) {
  switch (entry.type) {
    case GgufValueType::U8:
      return use(load<uint8_t>(entry.raw, i));
    case GgufValueType::I8:
      return use(load<int8_t>(entry.raw, i));
    case GgufValueType::U16:
      return use(load<uint16_t>(entry.raw, i));
    case GgufValueType::I16:
      return use(load<int16_t>(entry.raw, i));
    case GgufValueType::U32:
      return use(load<uint32_t>(entry.raw, i));
    case GgufValueType::I32:
      return use(load<int32_t>(entry.raw, i));
    case GgufValueType::U64:
      return use(load<uint64_t>(entry.raw, i));
    case GgufValueType::I64:
      return use(load<int64_t>(entry.raw, i));
    case GgufValueType::F32:
      return use(load<float>(entry.raw, i));
    case GgufValueType::F64:
      return use(load<double>(entry.raw, i));
    case GgufValueType::Bool:
    case GgufValueType::String:
    case GgufValueType::Array:
      return false;
  }
  return false;
}

bool read_element(const GgufEntry& entry, int64_t i, int64_t& value) {
  return visit_number(entry, i, [&](auto number) {
    if constexpr (std::is_floating_point_v<decltype(number)>) return false;
    if constexpr (std::is_same_v<decltype(number), uint64_t>)
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
    value = static_cast<int64_t>(number);  // NOLINT(bugprone-signed-char-misuse): a number
    return true;
  });
}

bool read_element(const GgufEntry& entry, int64_t i, double& value) {
  return visit_number(entry, i, [&](auto number) {
    value = static_cast<double>(number);
    return true;
  });
}

template <typename T>
const char* read_array(const GgufEntry& entry, std::vector<T>& value, const char* expected) {
  if (!entry.is_array) return expected;
  std::vector<T> elements(static_cast<size_t>(entry.count));
  for (int64_t i = 0; i < entry.count; ++i)
    if (!read_element(entry, i, elements[static_cast<size_t>(i)])) return expected;
  value = std::move(elements);
  return nullptr;
}

/// The string at the start of raw, which is moved behind it.
std::string_view next_string(std::span<const uint8_t>& raw) {
  const auto size = load<uint64_t>(raw, 0);
  const std::string_view text(reinterpret_cast<const char*>(raw.data()) + 8, size);
  raw = raw.subspan(8 + size);
  return text;
}

const char* type_name(GgufValueType type) {
  static constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

}  // namespace

const char* read_gguf_value(const GgufEntry& entry, int64_t& value) {
  return !entry.is_array && read_element(entry, 0, value) ? nullptr : "an integer";
}

const char* read_gguf_value(const GgufEntry& entry, double& value) {
  return !entry.is_array && read_element(entry, 0, value) ? nullptr : "a number";
}

const char* read_gguf_value(const GgufEntry& entry, bool& value) {
  if (entry.is_array || entry.type != GgufValueType::Bool) return "true or false";
  value = entry.raw[0] != 0;
  return nullptr;
}

const char* read_gguf_value(const GgufEntry& entry, std::string& value) {
  if (entry.is_array || entry.type != GgufValueType::String) return "a string";
  auto raw = entry.raw;
  value = next_string(raw);
  return nullptr;
}

const char* read_gguf_value(const GgufEntry& entry, std::vector<int64_t>& value) {
  return read_array(entry, value, "an array of integers");
}

const char* read_gguf_value(const GgufEntry& entry, std::vector<double>& value) {
  return read_array(entry, value, "an array of numbers");
}

const char* read_gguf_value(const GgufEntry& entry, std::vector<bool>& value) {
  if (!entry.is_array || entry.type != GgufValueType::Bool) return "an array of true and false";
  std::vector<bool> flags;
  for (int64_t i = 0; i < entry.count; ++i) flags.push_back(load<uint8_t>(entry.raw, i) != 0);
  value = std::move(flags);
  return nullptr;
}

const char* read_gguf_value(const GgufEntry& entry, std::vector<std::string>& value) {
  if (!entry.is_array || entry.type != GgufValueType::String) return "an array of strings";
  std::vector<std::string> strings;
  strings.reserve(static_cast<size_t>(entry.count));
  auto raw = entry.raw;
  for (int64_t i = 0; i < entry.count; ++i) strings.emplace_back(next_string(raw));
  value = std::move(strings);
  return nullptr;
}

std::string describe(const GgufEntry& entry) {
  if (entry.is_array) return fmt::format("[{} x {}]", entry.count, type_name(entry.type));
  if (entry.type == GgufValueType::Bool) return entry.raw[0] != 0 ? "true" : "false";
  if (entry.type == GgufValueType::String) {
    auto raw = entry.raw;
    const auto text = next_string(raw);
    if (text.size() <= kMaxDescribed) return fmt::format("\"{}\"", text);
    size_t end = kMaxDescribed;
    while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // not inside a character
    return fmt::format("\"{}…\" ({} bytes)", text.substr(0, end), text.size());
  }
  std::string text;
  visit_number(entry, 0, [&](auto number) {
    text = fmt::format("{}", +number);  // + : bytes are numbers, not characters
    return true;
  });
  return text;
}

}  // namespace medusa
