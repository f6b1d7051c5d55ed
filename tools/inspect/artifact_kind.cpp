#include "tools/inspect/artifact_kind.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "data/dataset/hdf5_reader.h"
#include "data/dataset/shard_file.h"
#include "data/prompts.h"
#include "heads/eagle3/eagle3_folder.h"
#include "infer/drafters/text_store.h"
#include "runtime/draft_folder.h"
#include "runtime/layer_choice.h"
#include "tools/bench/result_folder.h"
#include "tools/inspect/inspectors.h"
#include "tools/profile/profile_result.h"
#include "tools/report/section_parts.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

constexpr size_t kHeadBytes = 65536;           // enough for the first line of metrics
constexpr int kMostLevels = 3;                 // a run's joint/train/checkpoint, seen from above
constexpr size_t kEventHead = 64;              // an event file's first record says its version
constexpr uintmax_t kMostTextBytes = 1 << 26;  // YAML and JSON of ours are far smaller

/// A safetensors file opens with the length of its header, 8 bytes, and the header, a JSON object.
bool is_safetensors(const std::string& head, uintmax_t file_size) {
  if (head.size() < 10 || head[8] != '{') return false;
  uint64_t length = 0;
  std::memcpy(&length, head.data(), sizeof length);
  return length >= 2 && length <= file_size - 8;
}

/// Whether the object's key 'format' is this text.
bool has_format(const nlohmann::json& object, const char* format) {
  if (!object.is_object()) return false;
  const auto found = object.find("format");
  return found != object.end() && *found == format;
}

/// Among safetensors files, a text store says so in its header.
bool is_text_store(const std::string& head) {
  uint64_t length = 0;
  std::memcpy(&length, head.data(), sizeof length);
  const auto header = nlohmann::json::parse(head.substr(8, length), nullptr, false);
  return header.is_object() && header.contains("__metadata__") &&
         has_format(header["__metadata__"], kTextStoreFormat);
}

bool has_prompt(const nlohmann::json& entry) {
  return entry.is_object() && std::any_of(std::begin(kPromptKeys), std::end(kPromptKeys),
                                          [&](const char* key) { return entry.contains(key); });
}

/// A list of prompts, of lists of messages, or of the messages of one.
bool is_prompt_list(const nlohmann::json& root) {
  if (!root.is_array() || root.empty()) return false;
  const nlohmann::json& first = root[0].is_array() && !root[0].empty() ? root[0][0] : root[0];
  return has_prompt(root[0]) || (first.is_object() && first.contains("role"));
}

std::optional<ArtifactKind> kind_of_list(const fs::path& file) {
  const std::string text = read_file(file);
  if (nests_too_deeply(text)) return std::nullopt;
  const auto whole = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return is_prompt_list(whole) ? std::optional(ArtifactKind::Prompts) : std::nullopt;
}

std::optional<ArtifactKind> kind_of_json(const fs::path& file, const std::string& head) {
  const std::string line = head.substr(0, head.find('\n'));
  const auto first = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (first.is_object() && first.contains("kind") && first.contains("loss_nats"))
    return ArtifactKind::Metrics;
  if (first.is_object() && first.contains("method") && first.contains("answers"))
    return ArtifactKind::BenchAnswers;
  if (has_prompt(first)) return ArtifactKind::Prompts;
  const auto whole = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (has_format(whole, kBenchFormat)) return ArtifactKind::Bench;
  if (has_format(whole, kLayersFormat)) return ArtifactKind::LayerChoice;
  if (has_format(whole, kProfileFormat)) return ArtifactKind::Profile;
  if (whole.is_object() && whole.contains("methods")) return ArtifactKind::Comparison;
  return std::nullopt;
}

std::optional<ArtifactKind> kind_of_yaml(const fs::path& file) {
  try {
    const YAML::Node root = YAML::Load(read_file(file));
    if (!root.IsMap()) return std::nullopt;
    if (root["format"] && root["format"].IsScalar() &&
        root["format"].Scalar() == "medusa-choice-tree")
      return ArtifactKind::Tree;
    for (const char* section : {"run", "backbone", "distill", "train", "calibrate", "generate"})
      if (root[section] && !root["format"]) return ArtifactKind::Settings;
  } catch (const YAML::Exception&) {  // not YAML: not ours
  }
  return std::nullopt;
}

std::optional<ArtifactKind> kind_of_file(const fs::path& file) {
  const uintmax_t size = fs::file_size(file);
  const std::string head = read_beginning(file, kHeadBytes);
  if (head.starts_with("GGUF")) return ArtifactKind::Gguf;
  if (head.substr(0, kEventHead).find("brain.Event:") != std::string::npos)
    return ArtifactKind::Events;
  if (is_hdf5({reinterpret_cast<const uint8_t*>(head.data()), head.size()}))
    return ArtifactKind::Shard;
  if (is_safetensors(head, size))
    return is_text_store(head) ? ArtifactKind::TextStore : ArtifactKind::Safetensors;
  if (size > kMostTextBytes || head.find('\0') != std::string::npos) return std::nullopt;
  if (head.find(kPageMark) != std::string::npos) return ArtifactKind::Page;
  const size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return std::nullopt;
  if (head[begin] == '[') return kind_of_list(file);
  return head[begin] == '{' ? kind_of_json(file, head) : kind_of_yaml(file);
}

std::optional<ArtifactKind> kind_of_file_or_part(const fs::path& path) {
  const auto folder = marked_folder(fs::absolute(path).parent_path());
  if (folder && purpose_of_part(*folder, path.filename().string()) != nullptr)
    return ArtifactKind::Part;
  return kind_of_file(path);
}

/// @param levels  of folders inside it that are looked into. Links to folders are not followed:
/// they
///                may lead back here.
std::optional<ArtifactKind> kind_of_folder(const fs::path& folder, int levels) {
  if (const auto marked = marked_folder(folder)) return marked;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool known =
        entry.is_directory()
            ? levels > 0 && !entry.is_symlink() && kind_of_folder(entry.path(), levels - 1)
            : entry.is_regular_file() && kind_of_file_or_part(entry.path());
    if (known) return ArtifactKind::Folder;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ArtifactKind> find_kind(const fs::path& path) {
  if (fs::is_directory(path)) return kind_of_folder(path, kMostLevels);
  if (!fs::is_regular_file(path)) return std::nullopt;
  return kind_of_file_or_part(path);
}

std::optional<ArtifactKind> marked_folder(const fs::path& folder) {
  if (fs::exists(folder / "manifest.yaml")) return ArtifactKind::Heads;
  if (fs::exists(folder / "checkpoint.yaml")) return ArtifactKind::Checkpoint;
  if (!find_shards(folder).empty()) return ArtifactKind::Dataset;
  if (fs::exists(folder / kDraftManifest)) return ArtifactKind::DraftModel;
  if (is_eagle3(folder)) return ArtifactKind::Eagle3Draft;
  if (fs::exists(folder / "config.json")) return ArtifactKind::HuggingFace;
  return std::nullopt;
}

std::string kind_name(ArtifactKind kind) {
  switch (kind) {
    case ArtifactKind::Dataset:
      return "dataset";
    case ArtifactKind::Shard:
      return "dataset shard";
    case ArtifactKind::Heads:
      return "trained heads";
    case ArtifactKind::Checkpoint:
      return "training checkpoint";
    case ArtifactKind::HuggingFace:
      return "Hugging Face model folder";
    case ArtifactKind::Folder:
      return "folder";
    case ArtifactKind::Gguf:
      return "GGUF file";
    case ArtifactKind::Safetensors:
      return "safetensors file";
    case ArtifactKind::Tree:
      return "choice tree";
    case ArtifactKind::TextStore:
      return "text store";
    case ArtifactKind::DraftModel:
      return "draft model";
    case ArtifactKind::Eagle3Draft:
      return "EAGLE-3 draft";
    case ArtifactKind::LayerChoice:
      return "layers to skip";
    case ArtifactKind::Metrics:
      return "training metrics";
    case ArtifactKind::Events:
      return "training metrics for TensorBoard";
    case ArtifactKind::Comparison:
      return "comparison";
    case ArtifactKind::Bench:
      return "bench";
    case ArtifactKind::BenchAnswers:
      return "answers of a bench";
    case ArtifactKind::Profile:
      return "profile of a step";
    case ArtifactKind::Prompts:
      return "prompts";
    case ArtifactKind::Settings:
      return "run settings";
    case ArtifactKind::Page:
      return "page";
    case ArtifactKind::Part:
      return "part of a folder";
  }
  return "?";
}

ArtifactKind recognize_artifact(const fs::path& path) {
  if (!fs::exists(path))
    throw UserError(
        fmt::format("{}: no such file or folder, expected something to inspect; check the path",
                    path.string()));
  if (const auto kind = find_kind(path)) return *kind;
  throw UserError(fmt::format(
      "{}: a {} of no known kind, expected a dataset folder or shard (.h5), heads, a training "
      "checkpoint, a choice tree (.yaml), a text store, prompts (.jsonl, .json), run settings "
      "(.yaml), metrics.jsonl, an event file, compare.json, bench.json, bench.jsonl, profile.json, "
      "layers.json, a draft model, an EAGLE-3 draft, a GGUF or "
      "safetensors file, a Hugging Face model folder or a run folder; pass one of these",
      path.string(), fs::is_directory(path) ? "folder" : "file"));
}

}  // namespace medusa
