// Our heads in the files that other engines load.
// The contract of each format, and which engine needs what, is the table in
// heads/foreign/README.md.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backbone/weights.h"
#include "base/progress.h"
#include "heads/foreign/head_names.h"
#include "heads/medusa_heads.h"
#include "heads/tree/choice_tree.h"

namespace medusa {

enum class ExportFormat {
  FasterDecoding,  // the paper's code; TGI's first layout too
  TgiV2,           // no outputs: TGI runs the backbone's LM head
  Vllm,
  TensorRtLlm,  // what its convert_checkpoint.py takes as --medusa_model_dir
  Medusa2,      // the whole model with the heads among its tensors, as FasterDecoding's v1.0 models
};

template <>
struct EnumNames<ExportFormat> {
  static constexpr std::array<std::pair<const char*, ExportFormat>, 5> values{
      {{"fasterdecoding", ExportFormat::FasterDecoding},
       {"tgi-v2", ExportFormat::TgiV2},
       {"vllm", ExportFormat::Vllm},
       {"tensorrt-llm", ExportFormat::TensorRtLlm},
       {"medusa-2", ExportFormat::Medusa2}}};
};

struct ExportOptions {
  ExportFormat format = ExportFormat::FasterDecoding;
  std::optional<int64_t> num_heads{};  // only the first; nothing: all
  at::ScalarType dtype = at::kFloat;
  bool own_outputs = false;  // vLLM: a copy of the LM head for every head, not one for all
  std::string base_model{};  // name or path under which the engine finds the backbone
};

/// Heads laid out, not yet written.
struct ExportedHeads {
  ExportFormat format = ExportFormat::FasterDecoding;
  HeadLayout layout = HeadLayout::FasterDecoding;  // of the names
  std::map<std::string, at::Tensor> tensors;       // in the dtype asked for
  std::string config;           // config.json; of Medusa2 the keys that the model's own one gets
  std::string tree_file, tree;  // name and text; empty: none
  int64_t num_heads = 0;
  std::vector<std::string> notes;  // for people: what the engine will make of it
};

/// @param where  the heads' folder, for messages.
/// @param tree   is written beside the heads; paths deeper than the heads kept are left out.
/// @throws UserError  the format cannot hold these heads; the message names what can. Fewer heads
///                    than asked for; a number too large for dtype.
ExportedHeads export_heads(const MedusaHeads& heads, const Weights& backbone,
                           const std::optional<ChoiceTree>& tree, const ExportOptions& options,
                           const std::string& where);

/// Writes the folder; it is there whole or as it was before.
/// @param model  the backbone; the tokenizer files of a Hugging Face folder are copied, for Medusa2
///               all its files (export_model.h).
/// @param add    writes more files into the folder that it is given, before that takes its place.
/// @throws UserError  the place cannot be written or the disk is full.
void write_export(const std::filesystem::path& folder, const ExportedHeads& exported,
                  const std::filesystem::path& model, ProgressFunction progress = {},
                  const std::function<void(const std::filesystem::path&)>& add = {});

/// Opens the folder again as a stranger would: every file's names, shapes, types and bits against
/// what was meant, config.json against the tensors, and the keys that some engine trips over.
/// @throws UserError  anything differs.
void check_export(const std::filesystem::path& folder, const ExportedHeads& exported,
                  const Weights& backbone);

/// [(0,), (0, 1)]: as Medusa's Python files have it.
std::string medusa_tuples(const ChoiceTree& tree);
/// [[0], [0, 1]]: TensorRT-LLM's --medusa_choices.
std::string rank_lists(const ChoiceTree& tree);

}  // namespace medusa
