#include "backbone/files/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "backbone/files/dequantize.h"
#include "backbone/files/tensor_check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/formats/gguf_file.h"
#include "base/formats/safetensors_file.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kFp8 = "F8_E4M3";
constexpr std::string_view kScales = "_scale_inv";  // behind the name of a matrix in fp8

ModelFiles open_gguf(const fs::path& path) {
  const auto file = std::make_shared<const GgufFile>(path);
  ModelFiles files{path, ModelLayout::Gguf, read_gguf_config(*file), {}, {file}, file->parts()};
  const std::vector<fs::path>& parts = files.parts;
  for (const GgufTensor& tensor : file->tensors()) {
    if (!can_dequantize(tensor.type))
      throw UserError(fmt::format(
          "{}: tensor '{}' is {}, expected F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to "
          "Q6_K, IQ4_NL or IQ4_XS; use a file with one of these quantisations",
          parts[tensor.part].string(), tensor.name, ggml_type_info(tensor.type).name));
    files.tensors[std::string(tensor.name)] = {
        parts[tensor.part],
        std::string(ggml_type_info(tensor.type).name),
        tensor.type,
        {tensor.dims.rbegin(), tensor.dims.rend()},  // GGUF lists the fastest dimension first
        file->data(tensor)};
  }
  return files;
}

/// Tensor name -> file name, as the index of a model in several files says.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const json index = json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  std::map<std::string, std::string> places;
  const bool readable = index.is_object() && index.contains("weight_map") &&
                        index["weight_map"].is_object() && !index["weight_map"].empty();
  if (readable)
    for (const auto& [name, place] : index["weight_map"].items())
      if (place.is_string()) places[name] = place.get<std::string>();
  if (!readable || places.size() != index["weight_map"].size())
    throw UserError(
        fmt::format("{}: has no usable 'weight_map', expected an object of tensor "
                    "names and file names; copy or download the file again",
                    path.string()));
  for (const auto& [name, place] : places)
    if (fs::path(place).filename() != place)
      throw UserError(
          fmt::format("{}: places tensor '{}' in '{}', expected a file of the same "
                      "folder; copy or download the file again",
                      path.string(), name, place));
  return places;
}

/// The folder's .safetensors files in order of names: those of the index, or else all.
std::vector<fs::path> weight_files(const fs::path& folder,
                                   const std::map<std::string, std::string>& index) {
  std::set<fs::path> paths;
  for (const auto& [name, file] : index) paths.insert(folder / file);
  const fs::path whole = folder / "model.safetensors";
  if (!index.empty() && !paths.contains(whole) && fs::exists(whole))
    throw UserError(
        fmt::format("{}: lies beside {}, which does not name it, expected one model; remove the "
                    "one that does not belong there",
                    whole.string(), kIndexName));
  if (index.empty())
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".safetensors") paths.insert(entry.path());
  if (paths.empty())
    throw UserError(
        fmt::format("{}: holds no .safetensors file, expected the model's weights; "
                    "download them in this format",
                    folder.string()));
  return {paths.begin(), paths.end()};
}

/// The plain types of either format have the same names. F32 and others pass, F64 does not.
GgmlType plain_type(const fs::path& path, const SafetensorsEntry& entry) {
  for (const GgmlType type : {GgmlType::F32, GgmlType::F16, GgmlType::BF16})
    if (entry.dtype == ggml_type_info(type).name) return type;
  if (entry.dtype == kFp8) return GgmlType::F32;  // not looked at
  throw UserError(
      fmt::format("{}: tensor '{}' is {}, expected F32, F16, BF16 or F8_E4M3; use a model saved "
                  "in one of these types",
                  path.string(), entry.name, entry.dtype));
}

/// The tensors of scales go to the matrices in fp8 that they belong to.
void take_scales(std::map<std::string, StoredTensor>& tensors) {
  for (auto& [name, stored] : tensors) {
    const auto found = stored.fp8 ? tensors.find(name + std::string(kScales)) : tensors.end();
    if (found == tensors.end()) continue;
    const StoredTensor& scales = found->second;
    std::vector<int64_t> expected;
    for (const int64_t size : stored.shape) expected.push_back((size + kFp8Block - 1) / kFp8Block);
    if (scales.fp8 || expected.size() != 2 || scales.shape != expected)
      throw UserError(
          fmt::format("{}: tensor '{}' is {} of shape {}, expected plain scales of shape {} for "
                      "blocks of {} x {}; use a model saved with such blocks",
                      scales.file.string(), found->first, scales.type_name,
                      shape_text(scales.shape), shape_text(expected), kFp8Block, kFp8Block));
    stored.fp8->scales.resize(static_cast<size_t>(expected[0] * expected[1]));
    dequantize(scales.type, scales.bytes, stored.fp8->scales);
  }
  std::erase_if(tensors, [&](const auto& each) {
    const std::string& name = each.first;
    if (!name.ends_with(kScales)) return false;
    const auto owner = tensors.find(name.substr(0, name.size() - kScales.size()));
    return owner != tensors.end() && owner->second.fp8;
  });
}

ModelFiles open_folder(const fs::path& folder) {
  ModelFiles files{folder, ModelLayout::HuggingFace, read_hf_config(folder), {}, {}, {}};
  std::map<std::string, std::string> index;
  if (fs::exists(folder / kIndexName)) index = read_index(folder / kIndexName);
  files.parts = weight_files(folder, index);
  for (const fs::path& path : files.parts) {
    const auto file = std::make_shared<const SafetensorsFile>(path);
    files.mapped.push_back(file);
    for (const SafetensorsEntry& entry : file->entries()) {
      StoredTensor stored{path, entry.dtype, plain_type(path, entry), entry.shape, entry.bytes};
      if (entry.dtype == kFp8) stored.fp8.emplace();
      const auto [place, added] = files.tensors.emplace(entry.name, stored);
      if (!added)
        throw UserError(
            fmt::format("{}: tensor '{}' is also in {}, expected it once; remove the "
                        "file that does not belong to the model",
                        path.string(), entry.name, place->second.file.string()));
    }
  }
  for (const auto& [name, file] : index) {
    const auto found = files.tensors.find(name);
    if (found == files.tensors.end() || found->second.file != folder / file)
      throw UserError(
          fmt::format("{}: has no tensor '{}', expected it there as {} says; copy or "
                      "download the file again",
                      (folder / file).string(), name, kIndexName));
  }
  take_scales(files.tensors);
  return files;
}

}  // namespace

ModelFiles open_model_files(const fs::path& model) {
  return fs::is_directory(model) ? open_folder(model) : open_gguf(model);
}

std::string fingerprint_gguf(const std::vector<fs::path>& parts) {
  if (parts.size() == 1) return fingerprint_file(parts[0]);
  Fingerprint all;
  for (const fs::path& path : parts) all.add(fingerprint_file(path));
  return all.digest();
}

std::string fingerprint_model(const ModelFiles& files) {
  if (files.layout == ModelLayout::Gguf) return fingerprint_gguf(files.parts);
  Fingerprint all;
  all.add(fingerprint_file(files.path / "config.json"));
  for (const fs::path& path : files.parts) all.add(fingerprint_file(path));
  return all.digest();
}

}  // namespace medusa
