// How other projects name the tensors of Medusa heads, as one table that is read in both
// directions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fields.h"

namespace medusa {

/// Which project's names and files.
enum class HeadLayout {
  FasterDecoding,  // "0.0.linear.weight": the paper's code; TGI and TensorRT-LLM's converter read
                   // it
  TgiV2,           // the same without outputs: the backbone's LM head is used
  Medusa2,         // "medusa_head.0.0.linear.weight" among a whole model's tensors
  Vllm,            // "blocks.0.layers.0.weight"
  TensorRtLlm,     // "medusa_heads.0.medusa_layers.0.linear.weight": a converted checkpoint
  ModelOpt,        // "medusa_heads.0.0.linear.weight"
};

template <>
struct EnumNames<HeadLayout> {
  static constexpr std::array<std::pair<const char*, HeadLayout>, 6> values{
      {{"fasterdecoding", HeadLayout::FasterDecoding},
       {"tgi-v2", HeadLayout::TgiV2},
       {"medusa-2", HeadLayout::Medusa2},
       {"vllm", HeadLayout::Vllm},
       {"tensorrt-llm", HeadLayout::TensorRtLlm},
       {"modelopt", HeadLayout::ModelOpt}}};
};

enum class HeadTensorKind {
  Weight,        // [H, H] of a residual layer
  Bias,          // [H]
  Output,        // [V, H], a head's own
  SharedOutput,  // [V, H], one for all heads
  TokenMap,      // [V_t] tokens of the output's rows
  Scale,         // of quantized heads
};

/// Which tensor a name stands for.
struct HeadTensorName {
  HeadTensorKind part = HeadTensorKind::Weight;
  int64_t head = 0;
  int64_t layer = 0;  // of an Output: how many residual layers lie before it; -1: not said
};

/// Reads a tensor's name; nothing if it means nothing in this layout.
std::optional<HeadTensorName> parse_head_name(HeadLayout layout, std::string_view name);

/// The layout whose names these look like, by a name of it; nothing if it is no head's. TgiV2 is
/// told from FasterDecoding by what is missing, so it is never the answer.
std::optional<HeadLayout> layout_of_name(std::string_view name);

/// The name of a part that the layout has.
std::string head_tensor_name(HeadLayout layout, const HeadTensorName& name);

/// Says whether heads stand among a whole model's tensors, so that other names are none of ours.
inline bool holds_whole_model(HeadLayout layout) {
  return layout == HeadLayout::Medusa2 || layout == HeadLayout::ModelOpt ||
         layout == HeadLayout::TensorRtLlm;
}

}  // namespace medusa
