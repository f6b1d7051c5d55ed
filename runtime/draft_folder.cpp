#include "runtime/draft_folder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "data/json.h"

namespace medusa {
namespace {

constexpr const char* kDraftFormat = "medusa-draft";
constexpr int kDraftVersion = 1;

}  // namespace

nlohmann::ordered_json draft_json(const DraftManifest& manifest) {
  return {{"backbone", manifest.backbone},
          {"tokenizer", manifest.tokenizer},
          {"dataset", manifest.dataset},
          {"layers", manifest.layers},
          {"steps", manifest.steps},
          {"complete", manifest.complete},
          {"validation_loss_nats", manifest.loss},
          {"validation_agreement", manifest.agreement},
          {"validation_positions", manifest.num_validation}};
}

void write_draft_manifest(const std::filesystem::path& folder, const DraftManifest& manifest) {
  nlohmann::ordered_json out{{"format", kDraftFormat}, {"version", kDraftVersion}};
  out.update(draft_json(manifest));
  write_file(folder / kDraftManifest, json_text(out, 2) + "\n");
}

std::optional<DraftManifest> read_draft_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kDraftManifest;
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    const nlohmann::json in = nlohmann::json::parse(read_file(file));
    if (in.at("format") != kDraftFormat || in.at("version") != kDraftVersion)
      throw UserError(fmt::format(
          "{}: format {} version {}, expected {} version {}; make the draft model again with "
          "medusa "
          "make-draft",
          file.string(), json_text(in.at("format")), json_text(in.at("version")), kDraftFormat,
          kDraftVersion));
    DraftManifest out;
    in.at("backbone").get_to(out.backbone);
    in.at("tokenizer").get_to(out.tokenizer);
    in.at("dataset").get_to(out.dataset);
    out.layers = need_json<std::vector<int64_t>>(in, "layers", file.string());
    out.steps = need_json<int64_t>(in, "steps", file.string());
    in.at("complete").get_to(out.complete);
    in.at("validation_loss_nats").get_to(out.loss);
    in.at("validation_agreement").get_to(out.agreement);
    out.num_validation = need_json<int64_t>(in, "validation_positions", file.string());
    return out;
  } catch (const nlohmann::json::exception& error) {
    throw UserError(
        fmt::format("{}: is not a draft model's manifest ({}), expected what medusa make-draft "
                    "wrote; make it again",
                    file.string(), json_error_text(error.what())));
  }
}

}  // namespace medusa
