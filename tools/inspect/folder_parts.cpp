#include "tools/inspect/folder_parts.h"

#include "runtime/draft_folder.h"

namespace medusa {
namespace {

struct Part {
  ArtefactKind folder;
  const char* name;
  const char* purpose;
};

constexpr const char* kWhole = "written last: the folder is whole";
constexpr const char* kConfig = "widths, layers and rotary settings of the model";

const Part kParts[] = {
    {ArtefactKind::Heads, "DONE", kWhole},
    {ArtefactKind::Heads, "manifest.yaml",
     "what the heads are, of which backbone and dataset, and how often they are right"},
    {ArtefactKind::Checkpoint, "DONE", kWhole},
    {ArtefactKind::Checkpoint, "checkpoint.yaml",
     "how far training was, and the settings that decide what comes of it"},
    {ArtefactKind::HuggingFace, "DONE", kWhole},
    {ArtefactKind::HuggingFace, "config.json", kConfig},
    {ArtefactKind::HuggingFace, "tuned.json",
     "which model this one was, what it was trained on and how far it has gone from there"},
    {ArtefactKind::HuggingFace, "tokenizer.json", "the tokenizer, for transformers and for us"},
    {ArtefactKind::HuggingFace, "tokenizer_config.json", "chat template and special tokens"},
    {ArtefactKind::HuggingFace, "special_tokens_map.json", "special tokens, for transformers"},
    {ArtefactKind::HuggingFace, "generation_config.json", "end tokens and sampling settings"},
    {ArtefactKind::HuggingFace, "model.safetensors.index.json", "which file holds which tensor"},
    {ArtefactKind::DraftModel, "DONE", kWhole},
    {ArtefactKind::DraftModel, "config.json", kConfig},
    {ArtefactKind::DraftModel, kDraftManifest, "which model's layers these were, and its text"}};

}  // namespace

const char* purpose_of_part(ArtefactKind folder, const std::string& name) {
  for (const Part& part : kParts)
    if (part.folder == folder && part.name == name) return part.purpose;
  return nullptr;
}

}  // namespace medusa
