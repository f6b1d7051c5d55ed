// An export's folder: writing it, and opening it again.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>

#include "backbone/files/model_files.h"
#include "backbone/files/safetensors.h"
#include "backbone/files/tensor_check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/formats/torch_file.h"
#include "base/replace_folder.h"
#include "heads/foreign/export_heads.h"
#include "heads/foreign/export_model.h"
#include "heads/foreign/foreign_heads.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

const char* safetensors_name(ExportFormat format) {
  return format == ExportFormat::Vllm ? "model.safetensors" : kHeadsSafetensors;
}

bool has_torch_file(ExportFormat format) { return format == ExportFormat::FasterDecoding; }

[[noreturn]] void differ(const fs::path& file, const std::string& found_and_expected) {
  throw UserError(fmt::format("{}: {}; export again, and look whether the disk is sound",
                              file.string(), found_and_expected));
}

/// The heads among a whole model's tensors.
std::vector<SafetensorsEntry> heads_only(const ForeignHeads& found) {
  std::vector<SafetensorsEntry> heads;
  for (const SafetensorsEntry& entry : found.files.tensors)
    if (parse_head_name(found.layout, entry.name)) heads.push_back(entry);
  return heads;
}

void compare(const fs::path& file, const std::vector<SafetensorsEntry>& entries,
             const ExportedHeads& exported) {
  if (entries.size() != exported.tensors.size())
    differ(file,
           fmt::format("holds {} tensors, expected {}", entries.size(), exported.tensors.size()));
  for (const SafetensorsEntry& entry : entries) {
    const auto meant = exported.tensors.find(entry.name);
    if (meant == exported.tensors.end())
      differ(file, fmt::format("holds '{}', expected no such tensor", entry.name));
    const at::Tensor& tensor = meant->second;
    if (!has_shape(entry.shape, tensor.sizes()) || entry.bytes.size() != tensor.nbytes())
      differ(file, fmt::format("'{}' has shape {}, expected {}", entry.name,
                               shape_text(entry.shape), shape_text(tensor.sizes())));
    if (std::memcmp(entry.bytes.data(), tensor.data_ptr(), tensor.nbytes()) != 0)
      differ(file,
             fmt::format("'{}' holds other numbers, expected those that were written", entry.name));
  }
}

}  // namespace

void write_export(const fs::path& folder, const ExportedHeads& exported, const fs::path& model,
                  ProgressFunction progress, const std::function<void(const fs::path&)>& add) {
  replace_folder(folder, [&](const fs::path& fresh) {
    if (add) add(fresh);
    if (!exported.tree_file.empty()) write_file(fresh / exported.tree_file, exported.tree);
    if (exported.format == ExportFormat::Medusa2)
      return write_model_with_heads(fresh, model, exported.tensors, exported.config,
                                    std::move(progress));
    const fs::path tensors = fresh / safetensors_name(exported.format);
    write_tensors(tensors, exported.tensors, {{"format", "pt"}});
    if (has_torch_file(exported.format))
      write_torch_file(fresh / kHeadsPt, SafetensorsFile(tensors).entries());
    write_file(fresh / "config.json", exported.config);
    if (fs::is_directory(model))
      for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model",
                               "special_tokens_map.json", "chat_template.jinja"})
        if (fs::exists(model / name)) write_file(fresh / name, read_file(model / name));
  });
}

void check_export(const fs::path& folder, const ExportedHeads& exported, const Weights& backbone) {
  const ForeignHeads found = read_foreign_heads(folder);
  const bool is_model = exported.format == ExportFormat::Medusa2;
  if (is_model) {
    compare(folder, heads_only(found), exported);
    open_model_files(folder);  // throws where it is no model
  } else {
    const fs::path tensors = folder / safetensors_name(exported.format);
    compare(tensors, SafetensorsFile(tensors).entries(), exported);
  }
  if (has_torch_file(exported.format))
    compare(folder / kHeadsPt, TorchFile(folder / kHeadsPt).entries(), exported);
  for (const auto& misfits :
       {hint_misfits(found, std::nullopt), model_misfits(found, backbone.config)})
    if (!misfits.empty()) throw UserError(misfits.front().text);
  const HeadHints& hints = found.files.hints;
  const bool is_vllm = exported.format == ExportFormat::Vllm;
  if (found.num_heads != exported.num_heads || hints.num_heads != found.num_heads)
    differ(folder, fmt::format("holds {} heads, expected {}", found.num_heads, exported.num_heads));
  if (!found.has_bias || hints.has_bias != true)
    differ(hints.file, "medusa_fc_bias is not true, expected true beside stored biases");
  if (hints.vocab_size != backbone.config.vocab_size)
    differ(hints.file, fmt::format("vocab_size is not {}, expected the backbone's",
                                   backbone.config.vocab_size));
  if (!is_model && hints.architectures != (is_vllm ? std::vector<std::string>{"MedusaModel"}
                                                   : std::vector<std::string>{}))
    differ(hints.file, "'architectures' names another kind of model, expected none but vLLM's own");
}

}  // namespace medusa
