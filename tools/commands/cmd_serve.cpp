// medusa serve: a server that speaks OpenAI's and Anthropic's APIs, over the run's model, with its
// heads where it has some.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/output.h"
#include "base/shown_text.h"
#include "base/utf8.h"
#include "infer/backbone_target.h"
#include "infer/drafters/shared_texts.h"
#include "infer/host_decoder.h"
#include "runtime/drafting.h"
#include "runtime/measure/row_timer.h"
#include "server/server.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/drafter_choice.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

struct ServeOptions {
  ServerOptions server;
  std::string name;
  int32_t sequences = 4;
  bool no_share = false;
};

/// The factories of all drafters whose parts are loaded.
std::map<DrafterKind, DrafterFactory> ready_drafters(const InferConfig& infer,
                                                     const DraftParts& parts) {
  std::map<DrafterKind, DrafterFactory> out;
  for (const DrafterSpec* spec : all_drafters()) {
    InferConfig each = infer;
    each.drafter = spec->kind;
    if (has_parts(needs_of(each), parts))
      out.emplace(spec->kind, make_drafter_factory(each, parts));
  }
  return out;
}

/// The settings without what looks into others' answers, and with trees that others do not change
/// unless it is asked for: the drafts may be shown, or change the text.
InferConfig unshared(InferConfig infer) {
  std::erase(infer.merge.drafters, DrafterKind::Shared);
  infer.medusa.adaptive = infer.medusa.adaptive.value_or(false);
  return infer;
}

std::string counted(int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Whether the settings or the model say how messages become a prompt.
bool has_chat_template(const BackboneSection& backbone) {
  expect_model(backbone.model);
  return backbone.chat_template || !load_tokenizer(backbone.model)->chat_template().empty();
}

/// A request to try, as a command line.
std::string example(const Server& server, const ServedModel& served, bool wants_key) {
  return fmt::format("curl {}{} {}-d '{}'", server.url(),
                     served.has_chat ? "/v1/chat/completions" : "/v1/completions",
                     wants_key ? "-H 'Authorization: Bearer KEY' " : "",
                     served.has_chat
                         ? R"({"messages": [{"role": "user", "content": "What is gravity?"}]})"
                         : R"({"prompt": "Gravity is"})");
}

void print_start(const Server& server, const ServedModel& served, bool wants_key) {
  std::vector<std::string> drafters;
  for (const auto& [kind, factory] : served.drafters) drafters.emplace_back(enum_name(kind));
  print_text(
      "{} at {}, drafter {} (of {}), {} at the same time; the KV cache holds {} tokens, {} of {}"
      "\n\n{}\n",
      served.name, server.url(), enum_name(served.settings.drafter), fmt::join(drafters, ", "),
      counted(served.num_sequences, "sequence"), served.cache_tokens,
      counted(served.cache_tokens / served.context, "whole context"), served.context,
      example(server, served, wants_key));
}

/// By how much prompts may lengthen a pass: beside what else varies, a text then comes at most 1.3
/// times as slowly while a long prompt enters.
constexpr double kPromptShare = 0.25;

/// All that is loaded, and the model that a server answers with over it.
struct LoadedRun {
  /// @param shared  gets answers; null: they are not kept.
  LoadedRun(const std::string& name, int32_t sequences, const RunConfig& config,
            const InferConfig& infer, SharedTexts* shared)
      : has_chat(has_chat_template(config.backbone)),
        model(open_model(config.backbone, has_chat)),
        target(model.open_target(sequences, model.context)),
        drafting(load_drafting(config.draft_files(), infer, model, target)),
        decoder(target, make_rule(infer), make_drafter_factory(infer, with(shared)),
                {.cost = drafting.cost ? *drafting.cost
                                       : measured_step_cost(config.draft_files().tree, model),
                 .prompt_share = kPromptShare}),
        served{.name = name,
               .tokenizer = *model.tokenizer,
               .chat = model.chat,
               .eos = model.eos,
               .context = model.context,
               .num_sequences = target.num_free_slots(),
               .cache_tokens = target.total_rows(),
               .decoder = decoder,
               .settings = infer,
               .drafters = ready_drafters(infer, with(shared)),
               .unshared_drafters = ready_drafters(unshared(infer), drafting.parts()),
               .shared = shared,
               .has_chat = has_chat} {}

  DraftParts with(SharedTexts* shared) const {
    DraftParts parts = drafting.parts();
    parts.shared = shared;
    return parts;
  }

  bool has_chat;
  Model model;
  BackboneTarget target;
  LoadedDrafting drafting;
  HostDecoder decoder;
  ServedModel served;
};

/// Settings that would change no answer. A file of settings may have them for other commands.
void refuse_what_requests_say(const CommonOptions& common) {
  for (const std::string& set : common.sets)
    for (const char* key : {"generate.max_new_tokens", "generate.stop", "seed"})
      if (set.starts_with(key + std::string("=")))
        throw UserError(fmt::format(
            "--set {}: found a setting that serve does not read, expected others, as requests say "
            "max_tokens, stop and seed themselves; leave it out",
            shown_in_line(set)));
}

void run_serve(const CommonOptions& common, const ServeOptions& options) {
  refuse_what_requests_say(common);
  const RunConfig config = read_run_config(common);
  std::optional<SharedTexts> shared;
  if (!options.no_share)
    shared.emplace(int64_t{1'000'000} * config.generate.infer.shared.megabytes);
  const InferConfig infer =
      conversation_decoding(config, same_run_commands(common), shared.has_value());
  if (config.generate.names_drafter) check_parts_are_read(common, {infer.drafter}, infer);
  if (options.server.log_prompts && options.server.log.empty())
    throw UserError(
        "--log-prompts: no log is written, expected one that takes the prompts; give --log FILE, "
        "too");
  const std::string name = options.name.empty() ? model_name(config.backbone.model) : options.name;
  std::optional<LoadedRun> loaded;  // outlives the server
  if (!is_valid_utf8(name) || shown_in_line(name) != name)
    throw UserError(fmt::format(
        "serve: the model's name is '{}', expected UTF-8 without control characters, which clients "
        "can write; name it with --name NAME",
        shown_in_line(name)));
  Server server(name, options.server);
  loaded.emplace(name, options.sequences, config, infer, shared ? &*shared : nullptr);
  server.serve(loaded->served);
  note_shown(server.reach_note());
  if (!loaded->has_chat)
    note_shown(
        "note: the model has no chat template, so that requests with messages get 400; "
        "/v1/completions works, and --set backbone.chat_template=NAME chooses a template\n");
  if (common.json)
    print_json(nlohmann::json{{"url", server.url()}, {"model", name}});
  else
    print_start(server, loaded->served, !options.server.api_keys.empty());
  server.run(true);
}

}  // namespace

Command serve_command() {
  return {.name = "serve",
          .summary = "answer over HTTP, as OpenAI's and Anthropic's APIs do",
          .details = "Each request says seed, generate.max_new_tokens and generate.stop itself.",
          .sections = {"backbone", "generate"},
          .settings = {"--drafter", "--heads", "--tree", "--temperature", "--device", "--dtype",
                       "--threads", "--context", "--cache-mb"},
          .says_run = false,
          .examples = {"serve model.gguf --port 9000 --batch 16"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<ServeOptions>();
            added.group("Server");
            added.value("--host", options->server.host, "ADDRESS",
                        "to listen on; 127.0.0.1 is this machine alone");
            added.value("--port", options->server.port, "N", "0: any free one (8080)",
                        between<uint16_t>(0, 65535));
            added.value("--batch,--sequences", options->sequences, "N",
                        "texts that are decoded at the same time (4)", between(1, 256));
            added.value("--max-waiting", options->server.max_waiting, "N",
                        "requests that may wait for one of these; 0: none (256)",
                        between<int64_t>(0, 100000));
            added.value("--deadline", options->server.deadline, "SECONDS",
                        "for an answer, its wait included; then 504 (0: none)", between(0.0, 1e6));
            added.flag("--no-share", options->no_share,
                       "no answer helps to draft another: its timing could tell what others asked");
            added.value("--name", options->name, "NAME",
                        "of the model, for clients; else that of its file");
            added.group("Access and logs");
            added.value("--api-keys", options->server.api_keys, "FILE",
                        "a key on each line, of which a request must bring one");
            added.value("--cors", options->server.cors, "ORIGIN",
                        "whose pages may ask, like https://chat.example.org, or *");
            added.value("--metrics-names", options->server.metrics_names, "NAME",
                        "of /metrics; vllm: for its dashboards (own)");
            added.value("--log", options->server.log, "FILE",
                        "a line of JSON is added to it for each request; -: stdout");
            added.flag("--log-prompts", options->server.log_prompts,
                       "the prompts stand in the log, too");
            return [options, &common] { run_serve(common, *options); };
          }};
}

}  // namespace medusa
