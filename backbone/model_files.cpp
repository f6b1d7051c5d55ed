#include "backbone/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "backbone/dequantise.h"
#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/gguf_file.h"
#include "base/safetensors_file.h"

namespace medusa {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";

ModelFiles open_gguf(const fs::path& path) {
  const auto file = std::make_shared<const GgufFile>(path);
  ModelFiles files{path, ModelLayout::Gguf, read_gguf_config(*file), {}, {file}};
  for (const GgufTensor& tensor : file->tensors()) {
    if (!can_dequantise(tensor.type))
      throw UserError(fmt::format(
          "{}: tensor '{}' is {}, expected F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to "
          "Q6_K, IQ4_NL or IQ4_XS; use a file with one of these quantisations",
          path.string(), tensor.name, ggml_type_info(tensor.type).name));
    files.tensors[std::string(tensor.name)] = {
        path,
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
  throw UserError(
      fmt::format("{}: tensor '{}' is {}, expected F32, F16 or BF16; use a model saved "
                  "in one of these types",
                  path.string(), entry.name, entry.dtype));
}

ModelFiles open_folder(const fs::path& folder) {
  ModelFiles files{folder, ModelLayout::HuggingFace, read_hf_config(folder), {}, {}};
  std::map<std::string, std::string> index;
  if (fs::exists(folder / kIndexName)) index = read_index(folder / kIndexName);
  for (const fs::path& path : weight_files(folder, index)) {
    const auto file = std::make_shared<const SafetensorsFile>(path);
    files.mapped.push_back(file);
    for (const SafetensorsEntry& entry : file->entries()) {
      const StoredTensor stored{path, entry.dtype, plain_type(path, entry), entry.shape,
                                entry.bytes};
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
  return files;
}

}  // namespace

ModelFiles open_model_files(const fs::path& model) {
  return fs::is_directory(model) ? open_folder(model) : open_gguf(model);
}

std::string fingerprint_model(const ModelFiles& files) {
  if (files.layout == ModelLayout::Gguf) return fingerprint_file(files.path);
  std::set<fs::path> paths;
  for (const auto& [name, tensor] : files.tensors) paths.insert(tensor.file);
  Fingerprint all;
  all.add(fingerprint_file(files.path / "config.json"));
  for (const fs::path& path : paths) all.add(fingerprint_file(path));
  return all.digest();
}

}  // namespace medusa
