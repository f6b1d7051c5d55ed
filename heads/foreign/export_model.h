// A whole model with its heads among its tensors, as Medusa-2 models are published.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/progress.h"

namespace medusa {

/// Writes a Hugging Face folder: the model's files, its config.json with more keys, one more shard
/// with the heads, and the index that names all of them.
/// @param folder  exists and is empty.
/// @param model   a Hugging Face folder, whose shards and other files are copied byte for byte; or
/// a
///                GGUF file, whose weights are written in bfloat16 (its tokenizer is not).
/// @param heads   by the names that they shall have.
/// @param config  a JSON object of keys to add.
/// @throws UserError  the model cannot be read or holds heads already; the place cannot be written.
void write_model_with_heads(const std::filesystem::path& folder, const std::filesystem::path& model,
                            const std::map<std::string, at::Tensor>& heads,
                            const std::string& config, ProgressFunction progress = {});

}  // namespace medusa
