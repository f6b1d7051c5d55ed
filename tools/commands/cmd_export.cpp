// medusa export: the run's heads in the files that another engine loads.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backbone/files/load_weights.h"
#include "base/check.h"
#include "base/error.h"
#include "base/output.h"
#include "base/stderr_progress.h"
#include "base/utf8.h"
#include "data/tokenizer/tokenizer_export.h"
#include "heads/foreign/export_heads.h"
#include "heads/heads_checkpoint.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

enum class StoreDtype { Stored, Float32, Float16, Bfloat16 };

}  // namespace

template <>
struct EnumNames<StoreDtype> {
  static constexpr std::array<std::pair<const char*, StoreDtype>, 4> values{
      {{"stored", StoreDtype::Stored},
       {"float32", StoreDtype::Float32},
       {"float16", StoreDtype::Float16},
       {"bfloat16", StoreDtype::Bfloat16}}};
};

namespace {

struct ExportCommandOptions {
  ExportFormat format = ExportFormat::Vllm;
  StoreDtype dtype = StoreDtype::Stored;
  std::string output, base_model;
  std::optional<int64_t> num_heads;
  bool own_outputs = false, check = false;
};

at::ScalarType dtype_of(StoreDtype dtype, at::ScalarType stored) {
  switch (dtype) {
    case StoreDtype::Stored:
      return stored;
    case StoreDtype::Float32:
      return at::kFloat;
    case StoreDtype::Float16:
      return at::kHalf;
    case StoreDtype::Bfloat16:
      return at::kBFloat16;
  }
  MEDUSA_ASSERT(false, enum_name(dtype));
}

/// Whether a GGUF file becomes a Hugging Face folder on the way.
bool converts_model(ExportFormat format, const RunConfig& config) {
  return format == ExportFormat::Medusa2 && !std::filesystem::is_directory(config.backbone.model);
}

/// Of the LM head that outputs are copied from: as it stands in the model beside them.
at::ScalarType model_dtype(ExportFormat format, const RunConfig& config) {
  return converts_model(format, config) ? at::kBFloat16 : at::kFloat;
}

/// The run's own tree, where there is one.
std::optional<ChoiceTree> tree_of(const RunConfig& config, const LoadedHeads& loaded) {
  if (!std::filesystem::exists(config.tree_file())) return std::nullopt;
  ChoiceTree tree = read_choice_tree(config.tree_file());
  check_tree_fits(tree, loaded.heads.config.num_heads, loaded.manifest.fingerprint,
                  config.tree_file());
  return tree;
}

void report(const ExportedHeads& exported, const ExportCommandOptions& options, bool as_json) {
  if (as_json) {
    nlohmann::json names = nlohmann::json::array();
    for (const auto& [name, tensor] : exported.tensors) names.push_back(name);
    print_json(nlohmann::json{{"folder", options.output},
                              {"format", enum_name(exported.format)},
                              {"num_heads", exported.num_heads},
                              {"tensors", names},
                              {"tree", exported.tree_file},
                              {"checked", options.check},
                              {"notes", exported.notes}});
    return;
  }
  for (const std::string& note : exported.notes) print_note("note: {}\n", note);
  print_note("{} heads{}: {}\n", exported.num_heads,
             options.check ? ", opened again and as meant" : "", options.output);
}

void run_export(const CommonOptions& common, const ExportCommandOptions& options) {
  const ExportFormat format = options.format;
  const RunConfig config = read_run_config(common);
  const std::filesystem::path folder = config.heads_folder();
  if (!is_valid_utf8(options.base_model))
    throw UserError(
        "--base-model: is not UTF-8, expected text in it, as config.json must be; set the terminal "
        "to UTF-8, or rename the model");
  check_new_folder(options.output, "--output");
  const Weights backbone = load_weights_without_layers(
      config.backbone.model, model_dtype(format, config), at::Device(at::kCPU), stderr_progress());
  const LoadedHeads loaded = load_heads(folder, backbone);
  const std::string base = options.base_model.empty() ? config.backbone.model : options.base_model;
  ExportedHeads exported = export_heads(loaded.heads, backbone, tree_of(config, loaded),
                                        {.format = format,
                                         .num_heads = options.num_heads,
                                         .dtype = dtype_of(options.dtype, loaded.dtype),
                                         .own_outputs = options.own_outputs,
                                         .base_model = base},
                                        folder.string());
  if (format != ExportFormat::Medusa2 && options.base_model.empty() &&
      !std::filesystem::is_directory(config.backbone.model))
    exported.notes.push_back(
        fmt::format("config.json names {} as the model, which other engines do not open; name the "
                    "Hugging Face model with --base-model",
                    base));
  write_export(options.output, exported, config.backbone.model, stderr_progress(),
               [&](const std::filesystem::path& fresh) {
                 if (converts_model(format, config)) export_tokenizer(config.backbone.model, fresh);
               });
  if (options.check) check_export(options.output, exported, backbone);
  report(exported, options, common.json);
}

void add_options(Options& added, ExportCommandOptions& options) {
  added.group("Heads");
  added.value("--format", options.format, "NAME",
              "layout of the files: " + enum_choices<ExportFormat>());
  added.require("--format");
  added.value("--output", options.output, "FOLDER", "to write; it must not exist");
  added.require("--output");
  added.value("--num-heads", options.num_heads, "N", "only the first N", at_least<int64_t>(1));
  added.value("--store-dtype", options.dtype, "NAME",
              enum_choices<StoreDtype>() +
                  ": of the tensors written (stored: as the run's heads are, bit for bit)");
  added.value("--base-model", options.base_model, "NAME",
              "name or path under which the engine finds the backbone");
  added.flag("--own-outputs", options.own_outputs,
             "vllm: a copy of the LM head for every head instead of one");
  added.flag("--check", options.check, "open what was written again and compare every bit");
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .summary = "write the heads for another engine",
          .sections = {"backbone", "generate"},
          .settings = {"--heads", "--tree"},
          .says_run = false,
          .examples = {"export model.gguf --format vllm --output my-heads-vllm --check"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<ExportCommandOptions>();
            add_options(added, *options);
            return [options, &common] { run_export(common, *options); };
          }};
}

}  // namespace medusa
