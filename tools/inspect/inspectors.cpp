#include "tools/inspect/inspectors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "heads/eagle3/eagle3_folder.h"
#include "runtime/draft_folder.h"

namespace medusa {

namespace {

struct Part {
  ArtifactKind folder;
  const char* name;
  const char* purpose;
};

constexpr const char* kWhole = "written last: the folder is whole";
constexpr const char* kConfig = "widths, layers and rotary settings of the model";

const Part kParts[] = {
    {ArtifactKind::Heads, "DONE", kWhole},
    {ArtifactKind::Heads, "manifest.yaml",
     "what the heads are, of which backbone and dataset, and how often they are right"},
    {ArtifactKind::Checkpoint, "DONE", kWhole},
    {ArtifactKind::Checkpoint, "checkpoint.yaml",
     "how far training was, and the settings that decide what comes of it"},
    {ArtifactKind::HuggingFace, "DONE", kWhole},
    {ArtifactKind::HuggingFace, "config.json", kConfig},
    {ArtifactKind::HuggingFace, "tuned.json",
     "which model this one was, what it was trained on and how far it has gone from there"},
    {ArtifactKind::HuggingFace, "tokenizer.json", "the tokenizer, for transformers and for us"},
    {ArtifactKind::HuggingFace, "tokenizer_config.json", "chat template and special tokens"},
    {ArtifactKind::HuggingFace, "special_tokens_map.json", "special tokens, for transformers"},
    {ArtifactKind::HuggingFace, "generation_config.json", "end tokens and sampling settings"},
    {ArtifactKind::HuggingFace, "model.safetensors.index.json", "which file holds which tensor"},
    {ArtifactKind::DraftModel, "DONE", kWhole},
    {ArtifactKind::DraftModel, "config.json", kConfig},
    {ArtifactKind::DraftModel, kDraftManifest, "which model's layers these were, and its text"},
    {ArtifactKind::Eagle3Draft, "DONE", kWhole},
    {ArtifactKind::Eagle3Draft, "config.json", kConfig},
    {ArtifactKind::Eagle3Draft, kEagle3Manifest, "which model the draft was imported for"}};

}  // namespace

const char* purpose_of_part(ArtifactKind folder, const std::string& name) {
  for (const Part& part : kParts)
    if (part.folder == folder && part.name == name) return part.purpose;
  return nullptr;
}

void TensorTotals::add(std::string_view type, int64_t num_elements, int64_t bytes) {
  Total& total = by_type_[std::string(type)];
  ++total.tensors;
  total.parameters += num_elements;
  total.bytes += bytes;
}

int64_t TensorTotals::num_tensors() const {
  int64_t sum = 0;
  for (const auto& [type, total] : by_type_) sum += total.tensors;
  return sum;
}

int64_t TensorTotals::num_parameters() const {
  int64_t sum = 0;
  for (const auto& [type, total] : by_type_) sum += total.parameters;
  return sum;
}

void TensorTotals::describe(nlohmann::ordered_json& object) const {
  std::vector<std::pair<std::string, Total>> rows(by_type_.begin(), by_type_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  int64_t bytes = 0;
  auto table = nlohmann::ordered_json::array();
  for (const auto& [type, total] : rows) {
    bytes += total.bytes;
    table.push_back({{"type", type},
                     {"tensors", total.tensors},
                     {"parameters", total.parameters},
                     {"size_bytes", total.bytes}});
  }
  object["num_tensors"] = num_tensors();
  object["num_parameters"] = num_parameters();
  object["tensor_data_bytes"] = bytes;
  if (num_parameters() > 0)
    object["bits_per_parameter"] =
        8 * static_cast<double>(bytes) / static_cast<double>(num_parameters());
  object["tensors_by_type"] = std::move(table);
}

}  // namespace medusa
