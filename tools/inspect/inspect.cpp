#include "tools/inspect/inspect.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "tools/inspect/artefact_kind.h"
#include "tools/inspect/folder_parts.h"
#include "tools/inspect/inspectors.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// What of a folder is of a known kind, by name.
std::map<fs::path, ArtefactKind> known_entries(const fs::path& folder, int64_t& others) {
  std::map<fs::path, ArtefactKind> known;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::optional<ArtefactKind> kind;
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

std::string names_text(const std::map<fs::path, ArtefactKind>& entries) {
  std::string names;
  for (const auto& [path, kind] : entries)
    names += (names.empty() ? "" : ", ") + path.filename().string();
  return names;
}

/// One line about an entry of a folder. Folders in a folder are not looked through: they may be
/// many.
Json entry_summary(const fs::path& path, ArtefactKind kind) {
  int64_t others = 0;
  if (kind == ArtefactKind::Folder) return names_text(known_entries(path, others));
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
  const ArtefactKind kind = *marked_folder(folder);
  return {{"summary", purpose_of_part(kind, file.filename().string())},
          {"part_of", kind_name(kind)},
          {"to_see_all", "medusa inspect " + folder.string()}};
}

Json inspect_kind(ArtefactKind kind, const fs::path& path) {
  switch (kind) {
    case ArtefactKind::Dataset:
      return inspect_dataset(path);
    case ArtefactKind::Shard:
      return inspect_shard(path);
    case ArtefactKind::Heads:
      return inspect_heads(path);
    case ArtefactKind::Checkpoint:
      return inspect_checkpoint(path);
    case ArtefactKind::HuggingFace:
      return inspect_hugging_face(path);
    case ArtefactKind::Folder:
      return inspect_folder(path);
    case ArtefactKind::Gguf:
      return inspect_gguf(path);
    case ArtefactKind::Safetensors:
      return inspect_safetensors(path);
    case ArtefactKind::Tree:
      return inspect_tree(path);
    case ArtefactKind::TextStore:
      return inspect_text_store(path);
    case ArtefactKind::DraftModel:
      return inspect_draft_model(path);
    case ArtefactKind::LayerChoice:
      return inspect_layer_choice(path);
    case ArtefactKind::Events:
      return inspect_events(path);
    case ArtefactKind::Metrics:
      return inspect_metrics(path);
    case ArtefactKind::Comparison:
      return inspect_comparison(path);
    case ArtefactKind::Bench:
      return inspect_bench(path);
    case ArtefactKind::BenchAnswers:
      return inspect_bench_answers(path);
    case ArtefactKind::Profile:
      return inspect_profile(path);
    case ArtefactKind::Prompts:
      return inspect_prompts(path);
    case ArtefactKind::Settings:
      return inspect_settings(path);
    case ArtefactKind::Page:
      return inspect_page(path);
    case ArtefactKind::Part:
      return inspect_part(path);
  }
  return {};
}

}  // namespace

Json inspect(const fs::path& path) {
  const ArtefactKind kind = recognise_artefact(path);
  Json out{{"kind", kind_name(kind)}, {"path", path.string()}};
  out.update(inspect_kind(kind, path));
  return out;
}

}  // namespace medusa
