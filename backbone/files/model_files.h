// The files of a model opened and described alike: a GGUF file, or a Hugging Face folder with
// config.json and .safetensors. Names and layout still differ; load_weights.cpp knows both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backbone/files/dequantize.h"
#include "backbone/model_config.h"
#include "base/formats/ggml_type.h"

namespace medusa {

/// A tensor where it lies in a mapped file.
struct StoredTensor {
  std::filesystem::path file;
  std::string type_name;          // as the file spells it
  GgmlType type = GgmlType::F32;  // one that can_dequantize() knows
  std::vector<int64_t> shape;     // outermost first
  std::span<const uint8_t> bytes;
  std::optional<Fp8Scales> fp8 = std::nullopt;  // F8_E4M3 instead of type
};

/// How the tensors are named, and in which order the rows of Q and K lie.
enum class ModelLayout { Gguf, HuggingFace };

/// Movable; the tensors' bytes live as long as `mapped`.
struct ModelFiles {
  std::filesystem::path path;  // the file or folder that was asked for
  ModelLayout layout = ModelLayout::Gguf;
  ModelConfig config;
  std::map<std::string, StoredTensor> tensors;  // by the file's own name
  std::vector<std::shared_ptr<const void>> mapped;
  std::vector<std::filesystem::path> parts;  // the files that hold the tensors, in order
};

/// @param model  a .gguf file or a folder.
/// @throws UserError  as load_weights() says, except for what is wrong with single tensors.
ModelFiles open_model_files(const std::filesystem::path& model);

/// SHA-256 over the GGUF file's bytes; of a split one over each part, of a folder over config.json
/// and each .safetensors file in order of names. File names do not enter.
std::string fingerprint_model(const ModelFiles& files);

/// @param parts  of one GGUF file, as GgufFile::parts() lists them.
std::string fingerprint_gguf(const std::vector<std::filesystem::path>& parts);

}  // namespace medusa
