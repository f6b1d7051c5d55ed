// medusa import: published Medusa heads -> the run's own folder of heads; a published EAGLE-3 draft
// -> the run's own draft.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "backbone/files/load_weights.h"
#include "backbone/files/model_files.h"
#include "base/error.h"
#include "base/output.h"
#include "base/shown_text.h"
#include "base/stderr_progress.h"
#include "base/yaml_fields.h"
#include "heads/eagle3/eagle3_folder.h"
#include "heads/foreign/foreign_heads.h"
#include "heads/heads_checkpoint.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/output_check.h"

namespace medusa {

/// What is imported.
enum class ImportFormat { Auto, Heads, Eagle3 };

template <>
struct EnumNames<ImportFormat> {
  static constexpr std::array<std::pair<const char*, ImportFormat>, 3> values{
      {{"auto", ImportFormat::Auto},
       {"heads", ImportFormat::Heads},
       {"eagle3", ImportFormat::Eagle3}}};
};

namespace {

struct ImportOptions {
  std::string path;
  ImportFormat format = ImportFormat::Auto;
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

void check_no_draft(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder))
    throw UserError(fmt::format(
        "{}: there is a draft already, expected a new folder; remove it, or name another place "
        "with --set generate.eagle3.draft=FOLDER",
        folder.string()));
}

void import_eagle3(const CommonOptions& common, const ImportOptions& options,
                   const RunConfig& config) {
  if (options.num_heads)
    throw UserError(
        "--num-heads is given and the folder holds an EAGLE-3 draft, expected heads; leave it out");
  for (const GivenSetting& given : common.settings)
    if (given.option == "--heads")
      throw UserError(
          fmt::format("--heads {}: found an EAGLE-3 draft in {}, expected heads; leave it out, or "
                      "name the draft's place with --set generate.eagle3.draft=FOLDER",
                      given.texts[0], options.path));
  const std::filesystem::path folder = config.eagle3_folder();
  check_no_draft(folder);
  const Eagle3Files files = read_eagle3_files(options.path);
  const ModelFiles model = open_model_files(config.backbone.model);
  const Eagle3Weights draft = eagle3_weights(files, model.config);  // all of it can be read
  const FolderLock lock = lock_run(config, "medusa import");
  check_no_draft(folder);
  const Eagle3Manifest manifest =
      save_eagle3(folder, files, fingerprint_model(model), options.path + " (eagle3)");
  if (common.json)
    print_json(nlohmann::json{{"draft", folder.string()},
                              {"fingerprint", manifest.fingerprint},
                              {"layout", "eagle3"},
                              {"draft_vocab", files.draft_vocab},
                              {"feature_layers", draft.feature_layers},
                              {"own_embedding", files.own_embedding},
                              {"dtype", files.dtype}});
  else
    print_note("{}\ndraft: {}\n", eagle3_text(files, draft.feature_layers), folder.string());
  print_next(common, "generate", {"What is gravity?", "--drafter", "eagle3"});
}

void import_medusa_heads(const CommonOptions& common, const ImportOptions& options,
                         const RunConfig& config) {
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
  const auto& template_name = config.backbone.chat_template;
  if (common.says_next)
    print_note("next: {} doctor {} --model {}{}\n", common.program, shell_word(folder.string()),
               shell_word(config.backbone.model),
               template_name ? " --chat-template " + shell_word(*template_name) : "");
}

void run_import(const CommonOptions& common, const ImportOptions& options) {
  const RunConfig config = read_run_config(common);
  const bool is_draft = options.format == ImportFormat::Eagle3 ||
                        (options.format == ImportFormat::Auto && is_eagle3(options.path));
  is_draft ? import_eagle3(common, options, config) : import_medusa_heads(common, options, config);
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .summary = "take heads or an EAGLE-3 draft that another project published",
          .sections = {"backbone", "generate"},
          .settings = {"--heads"},
          .takes_model = false,
          .examples = {"import medusa-vicuna-7b-v1.3/ --model vicuna.gguf --num-heads 5",
                       "import EAGLE3-LLaMA3.1-Instruct-8B/ --model llama.gguf --format eagle3"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<ImportOptions>();
            added.positional("PATH", options->path,
                             "folder or file of heads: FasterDecoding, TGI, Medusa-2, vLLM, "
                             "TensorRT-LLM or ModelOpt; or of an EAGLE-3 draft; .safetensors or "
                             ".pt",
                             true);
            added.value("--format", options->format, "NAME",
                        "what the folder holds (auto: as its config.json says)");
            added.group("Heads");
            added.value("--num-heads", options->num_heads, "N",
                        "keep the first N; also settles a config.json that says another number",
                        at_least<int64_t>(1));
            return [options, &common] { run_import(common, *options); };
          }};
}

}  // namespace medusa
