// medusa import: published Medusa heads -> the run's own folder of heads.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backbone/files/load_weights.h"
#include "base/error.h"
#include "base/output.h"
#include "base/stderr_progress.h"
#include "base/yaml_fields.h"
#include "heads/foreign/foreign_heads.h"
#include "heads/heads_checkpoint.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/run_lock.h"

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
        "with --heads FOLDER",
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
  print_note("heads: {}\n", folder.string());
}

void run_import(const CommonOptions& common, const ImportOptions& options) {
  const RunConfig config = read_run_config(common);
  const std::filesystem::path folder = config.heads_folder();
  check_no_heads(folder);  // before much is read, and again when no other command writes here
  const ForeignHeads from = read_foreign_heads(options.path);
  check_hints(from, options.num_heads);
  const Weights backbone = load_weights_without_layers(config.backbone.model, at::kFloat,
                                                       at::Device(at::kCPU), stderr_progress());
  const ImportedHeads imported = import_heads(from, backbone, options.num_heads);
  const FolderLock lock = lock_run(config, "medusa import");
  check_no_heads(folder);
  HeadsManifest manifest;
  manifest.backbone = backbone.fingerprint;
  manifest.source = fmt::format("{} ({})", options.path, enum_name(from.layout));
  manifest.settings = write_config(config);
  save_heads(folder, imported.heads, imported.dtype, manifest);
  report(from, imported, manifest, folder, common.json);
  if (common.says_next)
    print_note("next: {} doctor {} --model {}\n", common.program, shell_word(folder.string()),
               shell_word(config.backbone.model));
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .summary = "take heads that another project published",
          .sections = {"backbone", "generate"},
          .settings = {"--heads"},
          .takes_model = false,
          .examples = {"import medusa-vicuna-7b-v1.3/ --model vicuna.gguf --num-heads 5"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<ImportOptions>();
            added.positional("PATH", options->path,
                             "folder or file of heads: FasterDecoding, TGI, Medusa-2, vLLM, "
                             "TensorRT-LLM or ModelOpt; .safetensors or .pt",
                             true);
            added.group("Heads");
            added.value("--num-heads", options->num_heads, "N",
                        "keep the first N; also settles a config.json that says another number",
                        at_least<int64_t>(1));
            return [options, &common] { run_import(common, *options); };
          }};
}

}  // namespace medusa
