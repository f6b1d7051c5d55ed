// medusa doctor: whether heads can work with a model, and in which engine they silently do not.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backbone/files/load_weights.h"
#include "base/error.h"
#include "base/output.h"
#include "base/stderr_progress.h"
#include "data/prompts.h"
#include "heads/eagle3/eagle3_folder.h"
#include "heads/foreign/diagnosis.h"
#include "heads/heads_checkpoint.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/commands/questions.h"
#include "tools/measure/acceptance.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

constexpr const char* kEverywhere = "every engine";

struct DoctorOptions {
  std::string heads, backbone, tree, questions, engine;
  std::optional<std::string> chat_template;
  int32_t tokens = 64;
  bool no_measuring = false;
};

/// What is known once everything has been looked at.
struct Report {
  std::vector<HeadFinding> findings;
  std::optional<MedusaHeads> heads;  // none: they cannot be run
  bool is_draft = false;             // what was looked at is an EAGLE-3 draft
  std::string description;
  std::optional<HeadAcceptance> acceptance;
};

void add_failure(Report& report, const char* code, const std::string& text) {
  report.findings.push_back({Severity::Failure, code, kEverywhere, text});
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

constexpr const char* kOwnEngine = "medusa";
constexpr const char* kOtherEngines = "every engine but medusa";

/// Heads that run in medusa only are no failure unless another engine is asked for.
HeadFinding own_engine_only(const DoctorOptions& options, std::string text) {
  const bool is_asked = !options.engine.empty() && lower(options.engine) != kOwnEngine;
  return {is_asked ? Severity::Failure : Severity::Warning, "own_engine_only", kOtherEngines,
          std::move(text)};
}

/// Heads that medusa itself wrote.
void examine_own(const DoctorOptions& options, const Weights& backbone, Report& report) {
  const HeadsManifest manifest = read_heads_manifest(options.heads);
  const HeadsConfig& config = manifest.config;
  report.description =
      fmt::format("{} heads of {} layers, input {}, output {}", config.num_heads,
                  config.layers_per_head, enum_name(config.input), enum_name(config.output));
  if (config.input != HeadInput::Hidden)
    report.findings.push_back(own_engine_only(
        options,
        fmt::format("{}: these heads read more than the hidden state (input: {}), expected input: "
                    "hidden elsewhere; they run in medusa only",
                    options.heads, enum_name(config.input))));
  if (config.correction_rank > 0) {
    report.description += fmt::format(", corrected by factors of rank {}", config.correction_rank);
    report.findings.push_back(own_engine_only(
        options,
        fmt::format("{}: these heads are corrected by the token drafted before (correction_rank: "
                    "{}), expected correction_rank: 0 elsewhere; they run in medusa only",
                    options.heads, config.correction_rank)));
  }
  if (manifest.backbone != backbone.fingerprint) {
    add_failure(report, "other_backbone",
                fmt::format("{}: trained on another backbone than {}, expected the same file; pass "
                            "that one, or train heads for this one",
                            options.heads, options.backbone));
    return;
  }
  report.heads = load_heads(options.heads, backbone).heads;
}

/// An EAGLE-3 draft, published or imported.
void examine_draft(const DoctorOptions& options, const Weights& backbone, Report& report) {
  report.is_draft = true;
  const std::filesystem::path path = options.heads;
  const Eagle3Files files = std::filesystem::exists(path / kEagle3Manifest)
                                ? load_eagle3(path, backbone.fingerprint)
                                : read_eagle3_files(path);
  const Eagle3Weights draft = eagle3_weights(files, backbone.config);
  report.description = eagle3_text(files, draft.feature_layers);
}

void examine_foreign(const DoctorOptions& options, const Weights& backbone, Report& report) {
  const ForeignHeads heads = read_foreign_heads(options.heads);
  report.description = fmt::format("{} heads of {} layers in the layout '{}', {}, {}",
                                   heads.num_heads, heads.layers_per_head, enum_name(heads.layout),
                                   heads.dtype, heads.has_bias ? "with biases" : "without biases");
  report.findings = diagnose(heads, backbone);
  if (model_misfits(heads, backbone.config).empty())
    report.heads = import_heads(heads, backbone, std::nullopt).heads;
}

void examine_files(const DoctorOptions& options, const Weights& backbone, Report& report) {
  try {
    if (std::filesystem::exists(std::filesystem::path(options.heads) / "manifest.yaml"))
      examine_own(options, backbone, report);
    else if (is_eagle3(options.heads))
      examine_draft(options, backbone, report);
    else
      examine_foreign(options, backbone, report);
  } catch (const UserError& error) {  // a finding like any other: the report goes on
    add_failure(report, "unreadable", error.what());
  }
  if (options.tree.empty() || !report.heads) return;
  const auto more =
      diagnose_tree(read_choice_tree(options.tree), report.heads->config.num_heads, options.tree);
  report.findings.insert(report.findings.end(), more.begin(), more.end());
}

std::vector<std::string> questions_of(const DoctorOptions& options) {
  if (options.questions.empty())
    return {"What is gravity?", "Write a short story about a lighthouse keeper.",
            "How do I boil an egg?", "Explain what a computer program is."};
  const std::vector<Prompt> asked = read_questions(options.questions).prompts;
  note_later_turns(asked);
  std::vector<std::string> out;
  for (const Prompt& prompt : asked) out.push_back(prompt.messages.back().content);
  return out;
}

void measure(const DoctorOptions& options, const Model& model, Report& report) {
  constexpr double kNothing = 0.02;  // of the positions; drafting the commonest token does as well
  report.acceptance =
      measure_acceptance(model, *report.heads, questions_of(options), options.tokens);
  const double first = report.acceptance->top_1.front();
  if (first < kNothing)
    add_failure(report, "acceptance_zero",
                fmt::format("{}: the first head is right at {:.1f} % of {} positions, expected 20 "
                            "to 60 %; these heads were trained on another model, or damaged",
                            options.heads, 100 * first, report.acceptance->num_positions));
}

bool concerns(const HeadFinding& finding, const std::string& engine) {
  if (finding.engines == kOtherEngines) return lower(engine) != kOwnEngine;
  if (engine.empty() || finding.engines.starts_with("every engine")) return true;
  return lower(finding.engines).find(lower(engine)) != std::string::npos;
}

nlohmann::json report_json(const Report& report, bool works) {
  nlohmann::json findings = nlohmann::json::array();
  for (const HeadFinding& finding : report.findings)
    findings.push_back({{"severity", enum_name(finding.severity)},
                        {"code", finding.code},
                        {"engines", finding.engines},
                        {"text", finding.text}});
  nlohmann::json out{{"works", works},
                     {"heads", report.description},
                     {"findings", findings},
                     {"acceptance", nullptr}};
  if (const auto& measured = report.acceptance)
    out["acceptance"] = {{"answers", measured->num_answers},
                         {"positions", measured->num_positions},
                         {"top_1", measured->top_1},
                         {"top_5", measured->top_5},
                         {"chain_tokens_per_step", measured->chain_tokens_per_step}};
  return out;
}

void print_report(const Report& report, bool works) {
  if (!report.description.empty()) print_text("{}\n", report.description);
  for (const HeadFinding& finding : report.findings)
    print_text("{} ({}): {}\n", enum_name(finding.severity), finding.engines, finding.text);
  if (const auto& measured = report.acceptance) {
    print_text("measured on {} answers, {} positions:\n", measured->num_answers,
               measured->num_positions);
    for (size_t k = 0; k < measured->top_1.size(); ++k)
      print_text("  head {}: first draft right {:.3f}, one of five {:.3f}\n", k, measured->top_1[k],
                 measured->top_5[k]);
    print_text("  as a chain: {:.2f} tokens per step\n", measured->chain_tokens_per_step);
  }
  const char* what = report.is_draft ? "this draft" : "these heads";
  if (works)
    print_text("{} work{} with this model\n", what, report.is_draft ? "s" : "");
  else
    print_text("{} {} not work everywhere: see the failures above\n", what,
               report.is_draft ? "does" : "do");
}

/// Messages about templates name the setting, which has another name here.
Model open_measured(const BackboneSection& section) {
  try {
    return open_model(section);
  } catch (const UserError& error) {
    constexpr std::string_view kSetting = "backbone.chat_template";
    std::string text = error.what();
    const size_t at = text.find(kSetting);
    if (at == std::string::npos) throw;
    throw UserError(text.replace(at, kSetting.size(), "--chat-template"));
  }
}

void run_doctor(const CommonOptions& common, const DoctorOptions& options) {
  BackboneSection section;
  section.model = options.backbone;
  section.device = DeviceKind::Cpu;  // where heads are read to
  section.chat_template = options.chat_template;
  Report report;
  // In float32, whatever decoding computes in: stored copies of the LM head are compared with it.
  examine_files(options,
                load_weights_without_layers(section.model, at::kFloat, at::Device(at::kCPU),
                                            stderr_progress()),
                report);
  if (report.heads && !options.no_measuring) measure(options, open_measured(section), report);
  const bool works =
      std::none_of(report.findings.begin(), report.findings.end(), [&](const HeadFinding& finding) {
        return finding.severity == Severity::Failure && concerns(finding, options.engine);
      });
  if (common.json)
    print_json(report_json(report, works));
  else
    print_report(report, works);
  if (!works)
    throw UserError(fmt::format(
        "{}: found failures, expected heads without; mend what is said above, or ask about one "
        "engine only with --engine",
        options.heads));
}

void add_options(Options& added, DoctorOptions& options) {
  added.positional("HEADS", options.heads,
                   "folder or file of heads or an EAGLE-3 draft, ours or published", true);
  added.group("Look at");
  added.value("--backbone,--model", options.backbone, "PATH",
              "the model: a .gguf file or a folder");
  added.require("--backbone");
  added.value("--tree", options.tree, "FILE", "choice tree that these heads should fill");
  added.value("--engine", options.engine, "NAME",
              "only failures in this engine count: medusa, vLLM, TGI, FasterDecoding, "
              "TensorRT-LLM");
  added.offer({"medusa", "vLLM", "TGI", "FasterDecoding", "TensorRT-LLM"});
  added.group("Measure");
  added.value("--questions", options.questions, "FILE",
              "prompts to measure on; else four built in");
  added.value("--tokens,--max-tokens", options.tokens, "N", "most tokens of each answer (64)",
              between(8, 4096));
  added.value("--chat-template", options.chat_template, "NAME", "a built-in one");
  added.flag("--no-measuring", options.no_measuring, "look at the files only");
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "say whether heads work with a model, and in which engine they do not",
          .examples = {"doctor runs/my/heads --backbone model.gguf",
                       "doctor medusa-vicuna-7b-v1.3/ --backbone vicuna.gguf --engine vLLM"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<DoctorOptions>();
            add_options(added, *options);
            return [options, &common] { run_doctor(common, *options); };
          }};
}

}  // namespace medusa
