#include "tools/inspect/inspect.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "tools/inspect/artifact_kind.h"
#include "tools/inspect/inspectors.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// What of a folder is of a known kind, by name.
std::map<fs::path, ArtifactKind> known_entries(const fs::path& folder, int64_t& others) {
  std::map<fs::path, ArtifactKind> known;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::optional<ArtifactKind> kind;
    try {
      kind = find_kind(entry.path());
    } catch (const UserError&) {  // it cannot be read
    }
    if (kind)
      known[entry.path()] = *kind;
    else
      ++others;
  }
  return known;
}

std::string names_text(const std::map<fs::path, ArtifactKind>& entries) {
  std::string names;
  for (const auto& [path, kind] : entries)
    names += (names.empty() ? "" : ", ") + path.filename().string();
  return names;
}

/// One line about an entry of a folder. Folders in a folder are not looked through: they may be
/// many.
Json entry_summary(const fs::path& path, ArtifactKind kind) {
  int64_t others = 0;
  if (kind == ArtifactKind::Folder) return names_text(known_entries(path, others));
  try {
    return inspect(path)["summary"];
  } catch (const UserError& error) {
    return std::string("damaged: ") + error.what();
  }
}

/// What lies in a folder, one line each; things of no known kind are left out.
Json inspect_folder(const fs::path& folder) {
  int64_t others = 0;
  const auto entries = known_entries(folder, others);
  Json contents = Json::array();
  for (const auto& [path, kind] : entries)
    contents.push_back({{"name", path.filename().string()},
                        {"kind", kind_name(kind)},
                        {"summary", entry_summary(path, kind)}});
  Json out;
  out["summary"] = names_text(entries);
  out["contents"] = std::move(contents);
  out["other_entries"] = others;
  return out;
}

Json inspect_page(const fs::path& file) {
  const std::string text = read_file(file);
  const size_t begin = text.find("<title>"), end = text.find("</title>");
  const bool has_title = begin != std::string::npos && end != std::string::npos && begin < end;
  return {{"summary", "pictures and tables; open it in a browser"},
          {"title", has_title ? text.substr(begin + 7, end - begin - 7) : ""}};
}

Json inspect_part(const fs::path& file) {
  const fs::path folder = fs::absolute(file).parent_path();
  const ArtifactKind kind = *marked_folder(folder);
  return {{"summary", purpose_of_part(kind, file.filename().string())},
          {"part_of", kind_name(kind)},
          {"to_see_all", "medusa inspect " + folder.string()}};
}

Json inspect_kind(ArtifactKind kind, const fs::path& path) {
  switch (kind) {
    case ArtifactKind::Dataset:
      return inspect_dataset(path);
    case ArtifactKind::Shard:
      return inspect_shard(path);
    case ArtifactKind::Heads:
      return inspect_heads(path);
    case ArtifactKind::Checkpoint:
      return inspect_checkpoint(path);
    case ArtifactKind::HuggingFace:
      return inspect_hugging_face(path);
    case ArtifactKind::Folder:
      return inspect_folder(path);
    case ArtifactKind::Gguf:
      return inspect_gguf(path);
    case ArtifactKind::Safetensors:
      return inspect_safetensors(path);
    case ArtifactKind::Tree:
      return inspect_tree(path);
    case ArtifactKind::TextStore:
      return inspect_text_store(path);
    case ArtifactKind::DraftModel:
      return inspect_draft_model(path);
    case ArtifactKind::Eagle3Draft:
      return inspect_eagle3(path);
    case ArtifactKind::LayerChoice:
      return inspect_layer_choice(path);
    case ArtifactKind::Events:
      return inspect_events(path);
    case ArtifactKind::Metrics:
      return inspect_metrics(path);
    case ArtifactKind::Comparison:
      return inspect_comparison(path);
    case ArtifactKind::Bench:
      return inspect_bench(path);
    case ArtifactKind::BenchAnswers:
      return inspect_bench_answers(path);
    case ArtifactKind::Profile:
      return inspect_profile(path);
    case ArtifactKind::Prompts:
      return inspect_prompts(path);
    case ArtifactKind::Settings:
      return inspect_settings(path);
    case ArtifactKind::Page:
      return inspect_page(path);
    case ArtifactKind::Part:
      return inspect_part(path);
  }
  return {};
}

}  // namespace

Json inspect(const fs::path& path) {
  const ArtifactKind kind = recognize_artifact(path);
  Json out{{"kind", kind_name(kind)}, {"path", path.string()}};
  out.update(inspect_kind(kind, path));
  return out;
}

}  // namespace medusa
