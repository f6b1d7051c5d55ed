// medusa import: published Medusa heads -> the run's own folder of heads.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backbone/model_ends.h"
#include "base/error.h"
#include "base/output.h"
#include "heads/foreign/foreign_heads.h"
#include "heads/heads_checkpoint.h"
#include "tools/commands/command.h"
#include "tools/run_lock.h"

namespace medusa {
namespace {

struct ImportOptions {
  std::string path;
  std::optional<int64_t> num_heads;
};

void check_no_heads(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder))
    throw UserError(fmt::format(
        "{}: there are heads already, expected a new folder; remove them, or name another place "
        "with --set generate.heads=FOLDER",
        folder.string()));
}

void report(const ForeignHeads& from, const ImportedHeads& imported, const HeadsManifest& manifest,
            const std::filesystem::path& folder, bool as_json) {
  const HeadsConfig& config = imported.heads.config;
  if (as_json) {
    print_json(nlohmann::json{{"heads", folder.string()},
                              {"fingerprint", manifest.fingerprint},
                              {"layout", enum_name(from.layout)},
                              {"num_heads", config.num_heads},
                              {"layers_per_head", config.layers_per_head},
                              {"output", enum_name(config.output)},
                              {"dtype", from.dtype},
                              {"notes", imported.notes}});
    return;
  }
  print_note("{} heads of {} layers, output {}, {}, in the layout '{}'\n", config.num_heads,
             config.layers_per_head, enum_name(config.output), from.dtype, enum_name(from.layout));
  for (const std::string& note : imported.notes) print_note("note: {}\n", note);
  print_note(
      "heads: {}\nnext: medusa doctor {} --backbone MODEL says how they do, medusa calibrate "
      "finds their tree\n",
      folder.string(), folder.string());
}

void run_import(const CommonOptions& common, const ImportOptions& options) {
  const RunConfig config = read_run_config(common);
  const std::filesystem::path folder = config.heads_folder();
  check_no_heads(folder);  // before much is read, and again when no other command writes here
  const ForeignHeads from = read_foreign_heads(options.path);
  check_hints(from, options.num_heads);
  const Weights backbone =
      load_weights_without_layers(config.backbone.model, at::kFloat, at::Device(at::kCPU));
  const ImportedHeads imported = import_heads(from, backbone, options.num_heads);
  const FolderLock lock = lock_run(config, "medusa import");
  check_no_heads(folder);
  HeadsManifest manifest;
  manifest.backbone = backbone.fingerprint;
  manifest.source = fmt::format("{} ({})", options.path, enum_name(from.layout));
  manifest.settings = write_config(config);
  save_heads(folder, imported.heads, imported.dtype, manifest);
  report(from, imported, manifest, folder, common.json);
}

}  // namespace

Command import_command() {
  return {"import",
          "take heads that another project published",
          {"backbone"},
          [](CLI::App& app, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<ImportOptions>();
            app.add_option("PATH", options->path,
                           "folder or file: FasterDecoding, TGI, Medusa-2, vLLM, TensorRT-LLM or "
                           "ModelOpt; .safetensors or .pt")
                ->required();
            app.add_option("--heads", options->num_heads,
                           "keep the first N; also settles a config.json that says another number")
                ->check(CLI::PositiveNumber);
            return [options, &common] { run_import(common, *options); };
          }};
}

}  // namespace medusa
