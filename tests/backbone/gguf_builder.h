// Writes GGUF files for tests: from nothing, or an existing one with keys and tensors changed.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/gguf_file.h"

namespace medusa {

class GgufBuilder {
 public:
  struct Tensor {
    GgmlType type = GgmlType::F32;
    std::vector<int64_t> dims;  // the fastest first
    std::string bytes;
  };

  GgufBuilder() = default;
  explicit GgufBuilder(const GgufFile& file) {
    for (const GgufEntry& entry : file.entries()) {
      std::string value;
      if (entry.is_array)
        value = number<uint32_t>(9) + number(static_cast<uint32_t>(entry.type)) +
                number(static_cast<uint64_t>(entry.count));
      else
        value = number(static_cast<uint32_t>(entry.type));
      entries[std::string(entry.key)] = value + text_of(entry.raw);
    }
    for (const GgufTensor& tensor : file.tensors())
      tensors[std::string(tensor.name)] = {tensor.type, tensor.dims, text_of(file.data(tensor))};
  }

  void set(const std::string& key, uint32_t value) {
    entries[key] = number<uint32_t>(4) + number(value);
  }
  void set(const std::string& key, float value) {
    entries[key] = number<uint32_t>(6) + number(value);
  }
  void set(const std::string& key, const char* value) {
    entries[key] = number<uint32_t>(8) + text(value);
  }

  void write(const std::filesystem::path& path) const {
    std::string head = "GGUF" + number<uint32_t>(3) + number<uint64_t>(tensors.size()) +
                       number<uint64_t>(entries.size());
    for (const auto& [key, value] : entries) head += text(key) + value;
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      head += text(name) + number(static_cast<uint32_t>(tensor.dims.size()));
      for (const int64_t size : tensor.dims) head += number(static_cast<uint64_t>(size));
      head += number(static_cast<uint32_t>(tensor.type)) + number<uint64_t>(data.size());
      data += tensor.bytes;
      data.resize((data.size() + 31) / 32 * 32);
    }
    head.resize((head.size() + 31) / 32 * 32);
    write_file(path, head + data);
  }

  std::map<std::string, std::string> entries;  // key -> type and value as stored
  std::map<std::string, Tensor> tensors;

 private:
  template <typename T>
  static std::string number(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string text(std::string_view value) {
    return number<uint64_t>(value.size()) + std::string(value);
  }
  static std::string text_of(std::span<const uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

}  // namespace medusa
