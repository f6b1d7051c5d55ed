// Heads that another project published, described by what their tensors say.
// The shapes decide; config.json is a hint, and where it contradicts them that is reported.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backbone/weights.h"
#include "heads/foreign/head_files.h"
#include "heads/foreign/head_names.h"
#include "heads/medusa_heads.h"

namespace medusa {

/// Something that does not fit together.
struct HeadMisfit {
  std::string code;  // a stable word for programs: "head_count"
  std::string text;  // where, found, expected, what to do
};

/// Movable; a copy would point into the original.
struct ForeignHeads {
  ForeignHeads() = default;
  ForeignHeads(ForeignHeads&&) = default;
  ForeignHeads& operator=(ForeignHeads&&) = default;

  HeadFiles files;
  HeadLayout layout = HeadLayout::FasterDecoding;
  int64_t num_heads = 0;        // K
  int64_t layers_per_head = 0;  // L
  int64_t hidden_size = 0;      // H
  int64_t output_rows = 0;      // V or V_t; 0: no outputs are stored
  bool has_bias = false;
  std::string dtype;  // of the residual layers, as safetensors spells it
  // All point into files. [K * L], head-major:
  std::vector<const SafetensorsEntry*> weights, biases;  // biases: null where there is none
  std::vector<const SafetensorsEntry*> outputs;          // [K]; empty: shared or none
  const SafetensorsEntry* shared_output = nullptr;       // one for all heads
  const SafetensorsEntry* token_map = nullptr;
};

/// Opens and describes. Keeps the files mapped.
/// @throws UserError  as open_head_files(); no tensor is named like a head's; one is missing, left
///                    over, quantized, or of another shape than its neighbors.
ForeignHeads read_foreign_heads(const std::filesystem::path& path);

/// Lists where config.json contradicts the tensors.
/// @param num_heads  how many heads are wanted: then config.json need not agree about that number.
std::vector<HeadMisfit> hint_misfits(const ForeignHeads& heads, std::optional<int64_t> num_heads);

/// Refuses heads that their own config.json contradicts.
/// @throws UserError  the first of hint_misfits().
void check_hints(const ForeignHeads& heads, std::optional<int64_t> num_heads);

/// Why these heads cannot belong to this model, as far as sizes and numbers tell.
std::vector<HeadMisfit> model_misfits(const ForeignHeads& heads, const ModelConfig& model);

struct ImportedHeads {
  MedusaHeads heads;                  // float32 masters, HeadInput::Hidden, on the CPU
  at::ScalarType dtype = at::kFloat;  // the masters came from; saving in it loses nothing
  std::vector<std::string> notes;     // for people: what was decided
};

/// @param backbone   its LM head is compared with the outputs: equal ones become
/// HeadOutput::Shared.
///                   The layers are not looked at.
/// @param num_heads  keep only the first; nothing: all.
/// @throws UserError  the first of model_misfits(); fewer heads than wanted; a number that is not
/// finite.
ImportedHeads import_heads(const ForeignHeads& heads, const Weights& backbone,
                           std::optional<int64_t> num_heads);

}  // namespace medusa
