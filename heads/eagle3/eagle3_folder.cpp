#include "heads/eagle3/eagle3_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/json_text.h"
#include "base/replace_folder.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEagle3Format = "medusa-eagle3";
constexpr int kEagle3Version = 1;
constexpr const char* kDraftTensors = "model.safetensors";

std::string fingerprint_of_tensors(std::span<const SafetensorsEntry> tensors) {
  Fingerprint hash;
  for (const SafetensorsEntry& entry : tensors) {
    hash.add(entry.name).add(entry.dtype).add(std::ssize(entry.shape));
    for (const int64_t size : entry.shape) hash.add(size);
    hash.add(entry.bytes);
  }
  return hash.digest();
}

}  // namespace

std::string eagle3_text(const Eagle3Files& files, std::span<const int32_t> feature_layers) {
  return fmt::format("an EAGLE-3 draft of {} of {} tokens, features before layers {}, {}{}",
                     files.draft_vocab, files.config.vocab_size, fmt::join(feature_layers, ", "),
                     files.dtype, files.own_embedding ? ", with an embedding of its own" : "");
}

Eagle3Manifest save_eagle3(const fs::path& folder, const Eagle3Files& files,
                           const std::string& backbone, const std::string& source) {
  std::vector<SafetensorsEntry> kept;
  for (const SafetensorsEntry& entry : files.tensors)
    if (entry.name != "t2d") kept.push_back(entry);
  const Eagle3Manifest manifest{fingerprint_of_tensors(kept), backbone, source};
  replace_folder(folder, [&](const fs::path& place) {
    write_safetensors(place / kDraftTensors, kept, {{"format", "pt"}});
    write_file(place / "config.json", files.settings);
    const nlohmann::ordered_json out{{"format", kEagle3Format},
                                     {"version", kEagle3Version},
                                     {"fingerprint", manifest.fingerprint},
                                     {"backbone", manifest.backbone},
                                     {"source", manifest.source}};
    write_file(place / kEagle3Manifest, json_text(out, 2) + "\n");
  });
  return manifest;
}

Eagle3Manifest read_eagle3_manifest(const fs::path& folder) {
  const fs::path file = folder / kEagle3Manifest;
  if (!fs::is_directory(folder) || !fs::exists(file))
    throw UserError(fmt::format(
        "{}: not found or no draft of ours, expected an EAGLE-3 draft; import a published one with "
        "medusa import FOLDER --format eagle3, or name another with generate.eagle3.draft",
        folder.string()));
  if (!folder_is_done(folder))
    throw UserError(fmt::format(
        "{}: no DONE file, expected a folder that medusa import finished; import the draft again",
        folder.string()));
  try {
    const nlohmann::json in = nlohmann::json::parse(read_file(file));
    if (in.at("format") != kEagle3Format || in.at("version") != kEagle3Version)
      throw UserError(fmt::format(
          "{}: format {} version {}, expected {} version {}; import the draft again", file.string(),
          json_text(in.at("format")), json_text(in.at("version")), kEagle3Format, kEagle3Version));
    return {in.at("fingerprint").get<std::string>(), in.at("backbone").get<std::string>(),
            in.at("source").get<std::string>()};
  } catch (const nlohmann::json::exception& error) {
    throw UserError(
        fmt::format("{}: is not a draft's manifest ({}), expected what medusa import wrote; import "
                    "the draft again",
                    file.string(), json_error_text(error.what())));
  }
}

Eagle3Files load_eagle3(const fs::path& folder, const std::string& backbone) {
  const Eagle3Manifest manifest = read_eagle3_manifest(folder);
  if (manifest.backbone != backbone)
    throw UserError(fmt::format(
        "{}: imported for backbone {}, the model is {}, expected the same; import the draft that "
        "belongs to this model, or decode with that one",
        folder.string(), short_fingerprint(manifest.backbone), short_fingerprint(backbone)));
  Eagle3Files files = read_eagle3_files(folder);
  if (fingerprint_of_tensors(files.tensors) != manifest.fingerprint)
    throw UserError(
        fmt::format("{}: its tensors are others than the manifest says, expected those of {}; "
                    "import the draft again",
                    folder.string(), short_fingerprint(manifest.fingerprint)));
  return files;
}

}  // namespace medusa
