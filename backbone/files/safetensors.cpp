#include "backbone/files/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "backbone/files/tensor_check.h"
#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

constexpr std::pair<const char*, at::ScalarType> kTypes[] = {
    {"F64", at::kDouble},
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
    {"F8_E4M3", at::kFloat8_e4m3fn},
};

const char* name_of(at::ScalarType type) {
  for (const auto& [name, each] : kTypes)
    if (each == type) return name;
  return "?";
}

std::optional<at::ScalarType> type_of(const std::string& name) {
  for (const auto& [each, type] : kTypes)
    if (name == each) return type;
  return std::nullopt;
}

const SafetensorsEntry& find_entry(const SafetensorsFile& file, const std::string& name) {
  if (const SafetensorsEntry* entry = file.find(name)) return *entry;
  throw UserError(
      fmt::format("{}: has no tensor '{}', expected it among the {} there; choose the "
                  "file that was written for this",
                  file.path().string(), name, file.entries().size()));
}

at::Tensor read_entry(const SafetensorsFile& file, const SafetensorsEntry& entry,
                      at::ScalarType dtype) {
  const auto stored = type_of(entry.dtype);
  if (!stored || (*stored != dtype && !(at::isFloatingType(*stored) && at::isFloatingType(dtype))))
    throw UserError(
        fmt::format("{}: tensor '{}' is {}, expected {}; choose the file that was "
                    "written for this",
                    file.path().string(), entry.name, entry.dtype, name_of(dtype)));
  return entry_tensor(entry).to(dtype);
}

}  // namespace

at::Tensor entry_tensor(const SafetensorsEntry& entry) {
  const auto type = type_of(entry.dtype);
  MEDUSA_ASSERT(type, entry.name, entry.dtype);
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(*type));
  // An empty tensor has a null pointer, which memcpy may not see.
  if (!entry.bytes.empty()) std::memcpy(tensor.data_ptr(), entry.bytes.data(), entry.bytes.size());
  return tensor;
}

at::ScalarType stored_type(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry& entry = find_entry(file, name);
  if (const auto type = type_of(entry.dtype)) return *type;
  throw UserError(
      fmt::format("{}: tensor '{}' is {}, expected a plain type like F32 or BF16; choose the file "
                  "that was written for this",
                  file.path().string(), name, entry.dtype));
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::ScalarType dtype) {
  return read_entry(file, find_entry(file, name), dtype);
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::ScalarType dtype,
                       at::IntArrayRef shape) {
  const SafetensorsEntry& entry = find_entry(file, name);
  if (!has_shape(entry.shape, shape))
    throw UserError(
        fmt::format("{}: tensor '{}' has shape {}, expected {}; choose the file that "
                    "was written for this",
                    file.path().string(), name, shape_text(entry.shape), shape_text(shape)));
  return read_entry(file, entry, dtype);
}

void write_tensors(const std::filesystem::path& path,
                   const std::map<std::string, at::Tensor>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> kept;  // the entries point into these
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().to(at::kCPU).contiguous());
    const at::Tensor& each = kept.back();
    const char* dtype = name_of(each.scalar_type());
    MEDUSA_ASSERT(*dtype != '?', name, each.scalar_type());
    entries.push_back({name,
                       dtype,
                       each.sizes().vec(),
                       {static_cast<const uint8_t*>(each.data_ptr()), each.nbytes()}});
  }
  write_safetensors(path, entries, metadata);
}

}  // namespace medusa
