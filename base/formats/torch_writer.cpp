// Writing files of torch.save: the opcodes are those that torch.load(weights_only=True) knows.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/formats/torch_file.h"

namespace medusa {
namespace {

/// Module and class of its storage; empty for a dtype that torch has none for.
std::string_view storage_of(std::string_view dtype) {
  for (const TorchStorage& each : kTorchStorages)
    if (each.dtype == dtype) return each.global;
  return {};
}

void put_number(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xffU);
}

void put_text(std::string& out, std::string_view text) {
  out += 'X';
  put_number(out, text.size(), 4);
  out += text;
}

void put_integer(std::string& out, int64_t value) {
  if (value < 0x7fffffff) {
    out += 'J';
    put_number(out, static_cast<uint64_t>(value), 4);
  } else {
    out += '\x8a';
    out += '\x08';
    put_number(out, static_cast<uint64_t>(value), 8);
  }
}

void put_tuple(std::string& out, const std::vector<int64_t>& values) {
  out += '(';
  for (const int64_t value : values) put_integer(out, value);
  out += 't';
}

void put_tensor(std::string& out, const SafetensorsEntry& entry, const std::string& key) {
  const std::string_view storage = storage_of(entry.dtype);
  MEDUSA_ASSERT(!storage.empty(), entry.name, entry.dtype);
  const size_t space = storage.find(' ');
  int64_t elements = 1;
  std::vector<int64_t> strides(entry.shape.size());
  for (size_t i = entry.shape.size(); i-- > 0;) {
    strides[i] = elements;
    elements *= entry.shape[i];
  }
  put_text(out, entry.name);
  out += "ctorch._utils\n_rebuild_tensor_v2\n((";
  put_text(out, "storage");
  out += fmt::format("c{}\n{}\n", storage.substr(0, space), storage.substr(space + 1));
  put_text(out, key);
  put_text(out, "cpu");
  put_integer(out, elements);
  out += "tQ";
  put_integer(out, 0);  // offset in the storage
  put_tuple(out, entry.shape);
  put_tuple(out, strides);
  out += '\x89';                           // requires_grad
  out += "ccollections\nOrderedDict\n)R";  // no hooks
  out += "tR";
}

}  // namespace

void write_torch_file(const std::filesystem::path& path,
                      std::span<const SafetensorsEntry> entries) {
  std::string pickle = "\x80\x02}(";
  std::vector<ZipMember> members(2 + entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const SafetensorsEntry& entry = entries[i];
    const std::string key = std::to_string(i);
    put_tensor(pickle, entry, key);
    members[2 + i] = {"archive/data/" + key,
                      {{reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()}}};
  }
  pickle += "u.";
  members[0] = {"archive/data.pkl", {pickle}};
  members[1] = {"archive/byteorder", {"little"}};
  members.push_back({"archive/version", {"3\n"}});
  write_zip(path, members);
}

}  // namespace medusa
