// medusa dataset: a dataset as text for other programs, and answers of other servers as a dataset.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "backbone/files/model_files.h"
#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/json_text.h"
#include "base/output.h"
#include "base/replace_folder.h"
#include "data/chat/conversations.h"
#include "data/dataset/answer_places.h"
#include "data/dataset/dataset_merge.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/dataset_writer.h"
#include "data/self_distill.h"
#include "data/text_file.h"
#include "runtime/check_dataset.h"
#include "runtime/model.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

using nlohmann::json;

struct DatasetOptions {
  std::string action, format = "jsonl";
  std::vector<std::string> files;  // or folders
};

/// Without the tokens that only control: a reader wants the words.
std::string words(const Tokenizer& tokenizer, std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens)
    if (!tokenizer.is_special(token)) text += tokenizer.bytes(token);
  return text;
}

/// A .json file holds a list, as ShareGPT is published, any other an entry on each line.
std::string file_text(const std::filesystem::path& file, const std::vector<std::string>& entries) {
  return lower_extension(file) == ".json" ? fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n"))
                                          : fmt::format("{}\n", fmt::join(entries, "\n"));
}

bool has_keys(const json& entry, const std::vector<std::string>& keys) {
  return entry.is_object() && entry.size() == keys.size() &&
         std::all_of(keys.begin(), keys.end(),
                     [&entry](const std::string& key) { return entry.contains(key); });
}

/// Whether an entry has what exports have, and nothing else, written as they write it.
bool is_exported(std::string_view line) {
  if (nests_too_deeply(line)) return false;
  const json entry = json::parse(line, nullptr, false);
  if (entry.is_discarded() || json_text(entry) != line) return false;
  if (has_keys(entry, {"id", "prompt", "answer", "tokens", "answer_start"})) return true;
  return has_keys(entry, {"id", "conversations"}) && entry["conversations"].size() == 2 &&
         std::all_of(entry["conversations"].begin(), entry["conversations"].end(),
                     [](const json& each) {
                       return has_keys(each, {"from", "value"});
                     });
}

/// Whether all entries of the file are those of an export, whichever format. One without any is
/// none.
bool is_export(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  std::string_view text = mapped.text();
  bool any = false;
  while (!text.empty()) {
    const size_t size = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    if (line == "[" || line == "]") continue;
    if (line.ends_with(',')) line.remove_suffix(1);
    if (!is_exported(line)) return false;
    any = true;
  }
  return any;
}

void export_dataset(const RunConfig& config, const DatasetOptions& options, bool as_json) {
  const bool to_stdout = options.files[0] == "-";
  if (to_stdout && as_json)
    throw UserError(
        "dataset export -: found --json, which prints on standard output, too, expected one of "
        "them; leave it out or name a file");
  const std::string file = to_stdout ? "standard output" : options.files[0];
  if (!to_stdout) check_output_file(file, "an earlier export", is_export);
  const DatasetReader dataset(config.dataset_folder());
  check_dataset_tokenizer(dataset, config.backbone.model);
  const auto tokenizer = load_tokenizer(config.backbone.model);
  const ChatTemplate chat = open_chat_template(config.backbone, *tokenizer);
  const bool sharegpt = options.format == "sharegpt";
  std::vector<std::string> entries;
  int64_t refused = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto all = dataset.tokens(i);
    const auto prompt = all.first(static_cast<size_t>(dataset.answer_start(i)));
    const auto question = question_of_prompt(*tokenizer, chat, prompt);
    const std::string answer = words(*tokenizer, dataset.answer(i));
    if (sharegpt && !question) {
      ++refused;
      continue;
    }
    entries.push_back(sharegpt
                          ? json_text(json{{"id", dataset.prompt_id(i)},
                                           {"conversations",
                                            {{{"from", "human"}, {"value", *question}},
                                             {{"from", "gpt"}, {"value", answer}}}}})
                          : json_text(json{{"id", dataset.prompt_id(i)},
                                           {"prompt", question ? json(*question) : json(nullptr)},
                                           {"answer", answer},
                                           {"tokens", std::vector<TokenId>(all.begin(), all.end())},
                                           {"answer_start", dataset.answer_start(i)}}));
  }
  if (to_stdout)
    print_bytes(file_text(file, entries));
  else
    write_file(file, file_text(file, entries));
  if (as_json)
    print_json(json{{"file", file}, {"answers", entries.size()}, {"refused", refused}});
  else
    print_note("{} answers: {}\n{}", entries.size(), file,
               refused > 0
                   ? fmt::format("{} left out: their prompt is more than one question\n", refused)
                   : "");
}

struct Imported {
  std::vector<Sample> samples;
  AnswerRefusals refusals;
  int64_t skipped = 0;
};

Imported read_samples(const RunConfig& config, const std::string& file, const Tokenizer& tokenizer,
                      int64_t max_tokens) {
  const ChatTemplate chat = open_chat_template(config.backbone, tokenizer);
  const ConversationSet set = read_conversations(file);
  Imported out;
  out.skipped = set.skipped;
  for (const Conversation& each : set.conversations)
    for (Sample& sample :
         samples_of_conversation(tokenizer, chat, each.id, each.messages, max_tokens, out.refusals))
      out.samples.push_back(std::move(sample));
  const AnswerRefusals& no = out.refusals;
  if (out.samples.empty())
    throw UserError(fmt::format(
        "{}: none of its answers can be used ({} empty, {} not as the chat template writes them, "
        "{} too long), expected some; choose the template of the model that answered with "
        "backbone.chat_template, or raise backbone.context",
        file, no.empty, no.altered, no.too_long));
  return out;
}

void check_no_dataset(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder))
    throw UserError(fmt::format(
        "{}: there is a dataset already, expected a new folder; remove it or set another run",
        folder.string()));
}

void import_dataset(const RunConfig& config, const DatasetOptions& options, bool as_json) {
  const std::filesystem::path folder = config.dataset_folder();
  check_no_dataset(folder);  // before much is read, and again when no other command writes here
  // Read twice, so it cannot be a FIFO: that is said here, before it is waited for.
  const MappedFile source(options.files[0]);
  const auto tokenizer = load_tokenizer(config.backbone.model);
  const ModelFiles model = open_model_files(config.backbone.model);
  const int64_t context =
      std::min(config.backbone.context.value_or(model.config.context), model.config.context);
  Imported in = read_samples(config, options.files[0], *tokenizer, context);
  std::vector<DistillPrompt> prompts;
  for (const Sample& sample : in.samples)
    prompts.push_back(
        {sample.prompt_id, {sample.tokens.begin(), sample.tokens.begin() + sample.answer_start}});
  DatasetInfo info;
  info.backbone = fingerprint_model(model);
  info.tokenizer = tokenizer->fingerprint();
  info.prompts = fingerprint_prompts(prompts);
  info.sampling = fmt::format("imported: {}\n", Fingerprint().add(source.bytes()).digest());
  info.seed = config.seed;
  info.vocab_size = model.config.vocab_size;
  const auto count = static_cast<int64_t>(in.samples.size());
  const FolderLock lock = lock_run(config, "medusa dataset import");
  check_no_dataset(folder);
  int64_t num_tokens = 0;
  create_folder(folder, [&](const std::filesystem::path& fresh) {
    DatasetWriter writer(fresh, info, count, config.distill.shard_samples);
    for (int64_t i = 0; i < count; ++i)
      writer.add(i, std::move(in.samples[static_cast<size_t>(i)]));
    num_tokens = writer.num_answer_tokens();
  });
  const AnswerRefusals& no = in.refusals;
  if (as_json)
    print_json(json{{"dataset", folder.string()},
                    {"answers", count},
                    {"answer_tokens", num_tokens},
                    {"empty", no.empty},
                    {"altered", no.altered},
                    {"too_long", no.too_long},
                    {"skipped", in.skipped}});
  else
    print_note(
        "{} answers, {} tokens; refused: {} empty, {} not as the chat template writes them, "
        "{} too long; {} conversations without a known speaker or an answer\ndataset: {}\n",
        count, num_tokens, no.empty, no.altered, no.too_long, in.skipped, folder.string());
}

/// The parts that medusa distill --shard left in the run's folder.
std::vector<std::filesystem::path> parts_of_run(const RunConfig& config) {
  std::vector<std::filesystem::path> parts;
  if (std::filesystem::is_directory(config.run))
    for (const auto& entry : std::filesystem::directory_iterator(config.run)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && name.starts_with("dataset-") &&
          name.find("-of-") != std::string::npos)
        parts.push_back(entry.path());
    }
  if (parts.empty())
    throw UserError(fmt::format(
        "{}: holds no dataset-i-of-n, expected the parts of a dataset; name their folders, or run "
        "medusa distill --shard i/n first",
        config.run));
  std::sort(parts.begin(), parts.end());
  return parts;
}

void merge_parts(const RunConfig& config, const DatasetOptions& options, bool as_json) {
  const std::vector<std::filesystem::path> parts =
      options.files.empty()
          ? parts_of_run(config)
          : std::vector<std::filesystem::path>(options.files.begin(), options.files.end());
  const std::filesystem::path folder = config.dataset_folder();
  const FolderLock lock = lock_run(config, "medusa dataset merge");
  const int64_t num_shards = merge_datasets(parts, folder);
  const DatasetReader dataset(folder);
  if (as_json)
    print_json(json{{"dataset", folder.string()},
                    {"parts", parts.size()},
                    {"shards", num_shards},
                    {"answers", dataset.size()},
                    {"answer_tokens", dataset.num_answer_tokens()}});
  else
    print_note("{} parts, {} shards, {} answers, {} tokens\ndataset: {}\n", parts.size(),
               num_shards, dataset.size(), dataset.num_answer_tokens(), folder.string());
}

void check_one_file(const DatasetOptions& options) {
  if (options.files.size() == 1) return;
  throw UserError(fmt::format("dataset {}: found {} files, expected one; name the file to {}",
                              options.action, options.files.size(),
                              options.action == "export" ? "write" : "read"));
}

void run_dataset(const CommonOptions& common, const DatasetOptions& options) {
  const RunConfig config = read_run_config(common);
  if (options.action == "merge") return merge_parts(config, options, common.json);
  check_one_file(options);
  if (options.action == "export")
    export_dataset(config, options, common.json);
  else
    import_dataset(config, options, common.json);
}

}  // namespace

Command dataset_command() {
  return {.name = "dataset",
          .summary = "write the training text for other programs, take answers in, join parts",
          .details =
              "export writes the run's text to FILE, import makes a dataset of the answers in "
              "FILE, merge joins what distill --shard wrote.",
          .sections = {"backbone", "distill"},
          .takes_model = false,
          .says_run = false,
          .examples = {"dataset export text.jsonl --model model.gguf",
                       "dataset import answers.jsonl --config my.yaml",
                       "dataset merge --config my.yaml"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<DatasetOptions>();
            added.positional("ACTION", options->action, "export, import or merge", true,
                             {"export", "import", "merge"});
            added.positionals("FILE", options->files,
                              "to write (-: standard output), or to read: ShareGPT or messages "
                              "(.jsonl, .json); merge: the parts' folders, without any those in "
                              "the run's");
            added.group("Format");
            added.text("--to", "NAME", "export: jsonl or sharegpt (jsonl)",
                       [options](const std::string& text) { options->format = text; },
                       {"jsonl", "sharegpt"});
            return [options, &common] { run_dataset(common, *options); };
          }};
}

}  // namespace medusa
