// Makes GGUF files for tests, from nothing or from another file: valid ones by default, broken ones
// by changing a part or the bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/formats/gguf_file.h"

namespace medusa::fixtures {

/// Keys and tensors come out in the order they were added. The calls may be chained.
class GgufBuilder {
 public:
  struct Tensor {
    std::string name;
    std::vector<int64_t> dims;  // the fastest first
    GgmlType type = GgmlType::F32;
    std::string bytes;
  };

  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  /// Everything that a file holds.
  explicit GgufBuilder(const GgufFile& file) {
    for (const GgufEntry& each : file.entries()) {
      auto& value =
          entry(each.key, each.is_array ? GgufValueType::Array : each.type, text_of(each.raw));
      if (!each.is_array) continue;
      std::string head;
      number(head, static_cast<uint32_t>(each.type));
      number(head, static_cast<uint64_t>(each.count));
      value.bytes.insert(0, head);
    }
    for (const GgufTensor& each : file.tensors())
      tensor(each.name, each.dims, each.type, text_of(file.data(each)));
  }

  GgufBuilder& u32(std::string_view key, uint32_t v) { return value(key, GgufValueType::U32, v); }
  GgufBuilder& i64(std::string_view key, int64_t v) { return value(key, GgufValueType::I64, v); }
  GgufBuilder& u64(std::string_view key, uint64_t v) { return value(key, GgufValueType::U64, v); }
  GgufBuilder& f32(std::string_view key, float v) { return value(key, GgufValueType::F32, v); }
  GgufBuilder& boolean(std::string_view key, bool v) {
    return value(key, GgufValueType::Bool, static_cast<uint8_t>(v));
  }
  GgufBuilder& text(std::string_view key, std::string_view v) {
    string(entry(key, GgufValueType::String).bytes, v);
    return *this;
  }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& v) {
    std::string& bytes = array(key, GgufValueType::String, v.size());
    for (const auto& item : v) string(bytes, item);
    return *this;
  }
  GgufBuilder& booleans(std::string_view key, const std::vector<bool>& v) {
    std::string& bytes = array(key, GgufValueType::Bool, v.size());
    for (const bool item : v) number(bytes, static_cast<uint8_t>(item));
    return *this;
  }
  GgufBuilder& i32s(std::string_view key, const std::vector<int32_t>& v) {
    std::string& bytes = array(key, GgufValueType::I32, v.size());
    for (const auto item : v) number(bytes, item);
    return *this;
  }
  GgufBuilder& f32s(std::string_view key, const std::vector<float>& v) {
    std::string& bytes = array(key, GgufValueType::F32, v.size());
    for (const auto item : v) number(bytes, item);
    return *this;
  }

  /// In place of what the key held, if it is there.
  GgufBuilder& set(std::string_view key, uint32_t v) { return drop(key).u32(key, v); }
  GgufBuilder& set(std::string_view key, float v) { return drop(key).f32(key, v); }
  GgufBuilder& set(std::string_view key, const char* v) { return drop(key).text(key, v); }

  /// Padding between tensors, written as general.alignment too.
  GgufBuilder& alignment(uint32_t bytes) {
    alignment_ = bytes;
    return u32("general.alignment", bytes);
  }

  /// @param dims  the fastest first.
  /// @param data  as many bytes as the type and the sizes ask for (not checked here).
  GgufBuilder& tensor(std::string_view name, const std::vector<int64_t>& dims, GgmlType type,
                      std::string_view data) {
    tensors_.push_back({std::string(name), dims, type, std::string(data)});
    return *this;
  }

  /// A float32 tensor.
  GgufBuilder& tensor(std::string_view name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    return tensor(name, dims, GgmlType::F32, data);
  }

  /// A tensor that is there, to be changed. The reference is good until another one is added.
  Tensor& tensor(std::string_view name) {
    for (Tensor& each : tensors_)
      if (each.name == name) return each;
    MEDUSA_ASSERT(false, name);
    return tensors_.front();
  }

  /// Removes the key or tensor of that name, if there is one.
  GgufBuilder& drop(std::string_view name) {
    std::erase_if(entries_, [&](const Entry& each) { return each.key == name; });
    std::erase_if(tensors_, [&](const Tensor& each) { return each.name == name; });
    return *this;
  }

  std::string bytes() const {
    std::string out = "GGUF";
    number(out, version_);
    number(out, static_cast<uint64_t>(tensors_.size()));
    number(out, static_cast<uint64_t>(entries_.size()));
    for (const Entry& each : entries_) {
      string(out, each.key);
      number(out, static_cast<uint32_t>(each.type));
      out += each.bytes;
    }
    std::string data;
    for (const Tensor& each : tensors_) {
      data.resize((data.size() + alignment_ - 1) / alignment_ * alignment_);
      string(out, each.name);
      number(out, static_cast<uint32_t>(each.dims.size()));
      for (const auto size : each.dims) number(out, size);
      number(out, static_cast<uint32_t>(each.type));
      number(out, static_cast<uint64_t>(data.size()));
      data += each.bytes;
    }
    if (!tensors_.empty()) out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_);
    return out + data;
  }

  const std::filesystem::path& write(const std::filesystem::path& path) const {
    write_file(path, bytes());
    return path;
  }

  template <typename T>
  static void number(std::string& out, T v) {
    char raw[sizeof v];
    std::memcpy(raw, &v, sizeof v);
    out.append(raw, sizeof v);
  }
  static void string(std::string& out, std::string_view v) {
    number(out, static_cast<uint64_t>(v.size()));
    out += v;
  }

 private:
  struct Entry {
    std::string key;
    GgufValueType type;
    std::string bytes;  // behind the type
  };

  static std::string text_of(std::span<const uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  Entry& entry(std::string_view key, GgufValueType type, std::string bytes = {}) {
    return entries_.emplace_back(Entry{std::string(key), type, std::move(bytes)});
  }
  std::string& array(std::string_view key, GgufValueType type, size_t count) {
    std::string& bytes = entry(key, GgufValueType::Array).bytes;
    number(bytes, static_cast<uint32_t>(type));
    number(bytes, static_cast<uint64_t>(count));
    return bytes;
  }
  template <typename T>
  GgufBuilder& value(std::string_view key, GgufValueType type, T v) {
    number(entry(key, type).bytes, v);
    return *this;
  }

  uint32_t version_ = 3;
  uint32_t alignment_ = 32;
  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
};

}  // namespace medusa::fixtures
