// The sizes of a layer and its rotary embedding in a config.json, of a model or of a draft.
#pragma once

#include "backbone/architecture.h"
#include "backbone/files/json_settings.h"
#include "backbone/model_config.h"

namespace medusa {

/// Reads hidden, head, feed-forward and vocabulary sizes, the norm's epsilon and the rotary
/// embedding.
/// @param config  with the number of layers, the context and the end tokens, which are checked too.
/// @throws UserError  a key is missing or mistyped, or no model can have its value.
void read_hf_sizes(const JsonSettings& file, const Architecture& architecture, ModelConfig& config);

}  // namespace medusa
