// Makes small GGUF files for tests: valid ones by default, broken ones by changing the bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/gguf_file.h"

namespace medusa::fixtures {

/// Keys and tensors come out in the order they were added. The calls may be chained.
class GgufBuilder {
 public:
  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  GgufBuilder& u32(std::string_view key, uint32_t v) { return value(key, GgufValueType::U32, v); }
  GgufBuilder& i64(std::string_view key, int64_t v) { return value(key, GgufValueType::I64, v); }
  GgufBuilder& u64(std::string_view key, uint64_t v) { return value(key, GgufValueType::U64, v); }
  GgufBuilder& f32(std::string_view key, float v) { return value(key, GgufValueType::F32, v); }
  GgufBuilder& boolean(std::string_view key, bool v) {
    return value(key, GgufValueType::Bool, static_cast<uint8_t>(v));
  }
  GgufBuilder& text(std::string_view key, std::string_view v) {
    entry(key, GgufValueType::String);
    string(metadata_, v);
    return *this;
  }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& v) {
    array(key, GgufValueType::String, v.size());
    for (const auto& item : v) string(metadata_, item);
    return *this;
  }
  GgufBuilder& i32s(std::string_view key, const std::vector<int32_t>& v) {
    array(key, GgufValueType::I32, v.size());
    for (const auto item : v) number(metadata_, item);
    return *this;
  }
  GgufBuilder& f32s(std::string_view key, const std::vector<float>& v) {
    array(key, GgufValueType::F32, v.size());
    for (const auto item : v) number(metadata_, item);
    return *this;
  }

  /// Padding between tensors, written as general.alignment too.
  GgufBuilder& alignment(uint32_t bytes) {
    alignment_ = bytes;
    return u32("general.alignment", bytes);
  }

  /// @param dims  the fastest first.
  /// @param data  as many bytes as the type and the sizes ask for (not checked here).
  GgufBuilder& tensor(std::string_view name, const std::vector<int64_t>& dims, GgmlType type,
                      std::string_view data) {
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    string(directory_, name);
    number(directory_, static_cast<uint32_t>(dims.size()));
    for (const auto size : dims) number(directory_, size);
    number(directory_, static_cast<uint32_t>(type));
    number(directory_, static_cast<uint64_t>(data_.size()));
    data_ += data;
    ++num_tensors_;
    return *this;
  }

  /// A float32 tensor.
  GgufBuilder& tensor(std::string_view name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    return tensor(name, dims, GgmlType::F32, data);
  }

  std::string bytes() const {
    std::string out = "GGUF";
    number(out, version_);
    number(out, num_tensors_);
    number(out, num_entries_);
    out += metadata_;
    out += directory_;
    if (num_tensors_ > 0) out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_);
    return out + data_;
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
  void entry(std::string_view key, GgufValueType type) {
    string(metadata_, key);
    number(metadata_, static_cast<uint32_t>(type));
    ++num_entries_;
  }
  void array(std::string_view key, GgufValueType type, size_t count) {
    entry(key, GgufValueType::Array);
    number(metadata_, static_cast<uint32_t>(type));
    number(metadata_, static_cast<uint64_t>(count));
  }
  template <typename T>
  GgufBuilder& value(std::string_view key, GgufValueType type, T v) {
    entry(key, type);
    number(metadata_, v);
    return *this;
  }

  uint32_t version_;
  uint64_t num_entries_ = 0;
  uint64_t num_tensors_ = 0;
  uint32_t alignment_ = 32;
  std::string metadata_;
  std::string directory_;
  std::string data_;
};

}  // namespace medusa::fixtures
