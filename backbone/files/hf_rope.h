// What config.json says of the rotary embedding.
#pragma once

#include "backbone/architecture.h"
#include "backbone/files/json_settings.h"
#include "backbone/model_config.h"

namespace medusa {

/// ModelConfig::rope_base.
/// @throws UserError  it is mistyped.
double read_hf_rope_base(const JsonSettings& file, const Architecture& architecture);

/// What stretches it: rope_factors and rope_attention, and how far texts reach, context. Head size,
/// base and context are there already.
/// @throws UserError  a key is missing or mistyped; a rule that we do not run.
void read_hf_rope(const JsonSettings& file, const Architecture& architecture, ModelConfig& config);

}  // namespace medusa
