// Writes a model as a Hugging Face folder: config.json and model.safetensors, as transformers and
// medusa read them.
#pragma once

#include <filesystem>

#include "backbone/weights.h"

namespace medusa {

/// The same model with its matrices in bfloat16, as decoding runs it; tied ones stay tied.
Weights narrowed(Weights weights);

/// Writes into a folder that exists. Tensors are stored in the weights' own dtypes, norms in that
/// of the matrices.
/// @param source  the model that the weights were made from. Of a Hugging Face folder config.json
/// is
///                taken over but for the number of layers, whether the LM head is tied, and the
///                dtype, and its tokenizer files are copied; of a GGUF file config.json is written
///                from the weights' settings.
/// @throws UserError  the place cannot be written; a stretched rotary embedding of a GGUF file that
///                    config.json has no words for.
void write_hf_model(const std::filesystem::path& folder, const Weights& weights,
                    const std::filesystem::path& source);

}  // namespace medusa
