#include "runtime/tuned_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "data/json.h"

namespace medusa {
namespace {

constexpr const char* kTunedFormat = "medusa-tuned-model";
constexpr int kTunedVersion = 1;

}  // namespace

nlohmann::ordered_json tuned_json(const TunedManifest& manifest) {
  nlohmann::ordered_json drift = nlohmann::ordered_json::object();
  for (const auto& [name, value] : manifest.drift) drift[name] = value;
  nlohmann::ordered_json out{{"backbone", manifest.backbone}, {"dataset", manifest.dataset}};
  if (!manifest.mixed_datasets.empty()) out["mixed_datasets"] = manifest.mixed_datasets;
  out["heads"] = manifest.heads;
  out["steps"] = manifest.steps;
  out["stopped"] = manifest.stopped;
  out["drift"] = std::move(drift);
  out["settings"] = manifest.settings;
  return out;
}

void write_tuned_manifest(const std::filesystem::path& folder, const TunedManifest& manifest) {
  nlohmann::ordered_json out{{"format", kTunedFormat}, {"version", kTunedVersion}};
  out.update(tuned_json(manifest));
  write_file(folder / kTunedManifest, json_text(out, 2) + "\n");
}

std::optional<TunedManifest> read_tuned_manifest(const std::filesystem::path& model) {
  const std::filesystem::path file = model / kTunedManifest;
  if (!std::filesystem::is_directory(model) || !std::filesystem::exists(file)) return std::nullopt;
  try {
    const auto in = nlohmann::ordered_json::parse(read_file(file));
    if (in.at("format") != kTunedFormat || in.at("version") != kTunedVersion)
      throw UserError(fmt::format(
          "{}: format {} version {}, expected {} version {}; tune the model again with medusa "
          "train",
          file.string(), json_text(in.at("format")), json_text(in.at("version")), kTunedFormat,
          kTunedVersion));
    TunedManifest out;
    in.at("backbone").get_to(out.backbone);
    in.at("dataset").get_to(out.dataset);
    if (in.contains("mixed_datasets")) in.at("mixed_datasets").get_to(out.mixed_datasets);
    in.at("heads").get_to(out.heads);
    out.steps = need_json<int64_t>(in, "steps", file.string());
    in.at("stopped").get_to(out.stopped);
    in.at("settings").get_to(out.settings);
    for (const auto& [name, value] : in.at("drift").items())
      out.drift.emplace_back(name, value.get<double>());
    return out;
  } catch (const nlohmann::json::exception& error) {
    throw UserError(
        fmt::format("{}: is not a tuned model's manifest ({}), expected what medusa train wrote; "
                    "tune the model again",
                    file.string(), json_error_text(error.what())));
  }
}

}  // namespace medusa
