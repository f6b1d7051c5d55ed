// The targets of fuzz_artifacts: what the program itself wrote and reads again. Checksums are no
// secret, so an input gets a right one after the damage; else none would come behind the first
// check.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "backbone/files/safetensors.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/json_text.h"
#include "base/yaml_fields.h"
#include "heads/heads_checkpoint.h"
#include "infer/drafters/text_store.h"
#include "runtime/bench/sample.h"
#include "runtime/layer_choice.h"
#include "tests/fuzz/guarded_reader.h"
#include "tests/fuzz/json_words.h"
#include "tools/run/run_config.h"
#include "train/record/checkpoint.h"
#include "train/record/event_file.h"

namespace medusa::fuzz {
namespace {

namespace fs = std::filesystem;

/// A finding, as it is no UserError.
void expect_same(const std::string& found, const std::string& expected) {
  if (found != expected) throw std::logic_error("what was read is written as something else");
}

std::vector<std::string> yaml_words(std::initializer_list<const char*> own) {
  std::vector<std::string> words{"- ",   "[",     "]",    ", ",        "-1",  "2147483648", ".nan",
                                 ".inf", "1e999", "null", "~",         "\"",  "\n",         "; ",
                                 "&a ",  "*a",    "<<: ", "!!binary ", "{",   "}",          "? ",
                                 "| ",   "\t",    "0x1F", "010",       "yes", ": "};
  words.insert(words.end(), own.begin(), own.end());
  return words;
}

// --- run settings -------------------------------------------------------------------------------

constexpr const char* kSettings = R"(run: runs/a
seed: 3
backbone: {model: model.gguf, device: cpu, threads: 2, cache_mb: 64}
distill:
  prompts: [a.jsonl, "-"]
  question_sampling: {temperature: 1, top_p: 0.95}
train:
  stages: [heads, joint]
  data: [runs/a/dataset]
  heads: {num_heads: 2, input: root, output: truncated_shared, output_size: 64}
  joint: {lora: {rank: 4, targets: [q_proj]}}
calibrate: {nodes: 8}
draft: {layers: 1}
generate:
  drafter: merge
  medusa: {adaptive: null}
  merge: {drafters: [medusa, prompt_lookup], budget: 16}
  stop: ["\n\n"]
)";

void run_settings(const std::string& path) {
  const auto config = read_config<RunConfig>(YamlFile(path));
  const std::string text = write_config(config);
  expect_same(write_config(read_config<RunConfig>(YamlFile::from_text(text, path))), text);
}

// --- layers.json, bench.jsonl -------------------------------------------------------------------

constexpr const char* kLayers = R"({"format": "medusa-layers", "version": 1,
 "backbone": "sha256:00", "skip": [1, 3], "agreement": 0.7, "cost_of_a_drafted_token": 0.5,
 "num_draft": 4, "expected_speedup": 1.1})";

void run_layers(const std::string& path) {
  const LayerChoice choice = read_layer_choice(path);
  (void)json_text(layer_choice_json(choice), 2);
}

std::string samples_seed() {
  BenchSample sample, plain;
  sample.method = "medusa";
  sample.rule = "greedy";
  sample.same_text = true;
  sample.id = "a/1";
  plain.method = "none";
  sample.answers.push_back({.text = "a \u00e9",
                            .tokens = {1, 2},
                            .finish = "length",
                            .steps = 1,
                            .proposed = 3,
                            .accepted = 1,
                            .emitted_per_step = {0, 0, 1},
                            .prefill_s = .1,
                            .parts_s = {.1, .2, .3, .4}});
  return sample_line(sample) + "\n" + sample_line(plain) + "\n";
}

std::string sealed_samples(std::string_view lines) {
  std::istringstream in{std::string(lines)};
  std::string out;
  for (std::string line; std::getline(in, line);) {
    auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) {
      object.erase("checksum");
      object["checksum"] = fingerprint_text(json_text(object));
      line = json_text(object);
    }
    out += line + "\n";
  }
  return out;
}

void run_samples(const std::string& path) {
  for (const BenchSample& sample : read_samples(path)) {
    (void)sample_line(sample);
    (void)sample.emitted();
    (void)sample.decode_s();
  }
}

// --- TensorBoard's events -----------------------------------------------------------------------

template <typename T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// What stands between the records' lengths and checksums: pieces of up to 239 bytes, each behind a
/// byte with its length. Behind a larger byte a record says a huge length.
std::string sealed_events(std::string_view pieces) {
  constexpr uint8_t kHuge = 240;
  const auto masked = [](const std::string& text) {
    const uint32_t crc = crc32c(text);
    return raw(static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8U));
  };
  std::string out;
  while (!pieces.empty()) {
    const auto first = static_cast<uint8_t>(pieces[0]);
    const std::string bytes(pieces.substr(1, first));
    const std::string length =
        raw(first < kHuge ? uint64_t{bytes.size()} : ~uint64_t{0} << (first - kHuge));
    out += length + masked(length) + bytes + masked(bytes);
    pieces.remove_prefix(std::min<size_t>(pieces.size(), 1 + size_t{first}));
  }
  return out;
}

std::string events_seed() {
  using namespace std::string_literals;
  const std::string version =
      "\x1a\x0d"
      "brain.Event:2";
  const std::string scalar =
      "\x10\x05\x2a\x0a\x0a\x08\x0a\x01"
      "a\x15\0\0\x20\x40"s;
  std::string out;
  for (const std::string& each : {version, scalar}) out += static_cast<char>(each.size()) + each;
  return out;
}

void run_events(const std::string& path) { (void)read_event_file(path); }

// --- stores of texts ----------------------------------------------------------------------------

constexpr const char* kStore =
    "format=medusa-text-store version=1 tokenizer=a num_texts=2\n"
    "5 7 -1 5 8 -1\n"
    "0 3 1 4\n";

/// A line of metadata, one of tokens, one of the places of suffixes: any numbers. Where the
/// metadata say "unaligned" the arrays begin at an odd byte.
std::string sealed_store(std::string_view recipe) {
  std::istringstream in{std::string(recipe)};
  std::map<std::string, std::string> metadata;
  std::string line, word;
  std::getline(in, line);
  for (std::istringstream words(line); words >> word;) {
    const size_t at = word.find('=');
    if (at != std::string::npos) metadata[word.substr(0, at)] = word.substr(at + 1);
  }
  std::vector<int32_t> arrays[2];
  for (auto& array : arrays) {
    if (!std::getline(in, line)) break;
    std::istringstream numbers(line);
    for (int32_t number = 0; numbers >> number;) array.push_back(number);
  }
  const auto bytes = [](const std::vector<int32_t>& array) {
    return std::span(reinterpret_cast<const uint8_t*>(array.data()), array.size() * 4);
  };
  Fingerprint sum;
  for (const auto& [key, value] : metadata)
    if (key != "checksum") sum.add(key).add(0).add(value).add(0);
  metadata["checksum"] = sum.add(bytes(arrays[0])).add(bytes(arrays[1])).digest();
  nlohmann::json header{{"__metadata__", metadata}};
  size_t end = 0;
  for (size_t i = 0; i < 2; ++i) {
    const size_t begin = end;
    end += arrays[i].size() * sizeof(int32_t);
    header[i == 0 ? "tokens" : "suffixes"] = {
        {"dtype", "I32"}, {"shape", {arrays[i].size()}}, {"data_offsets", {begin, end}}};
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8 + (metadata.contains("unaligned") ? 1 : 0), ' ');
  const auto length = static_cast<uint64_t>(text.size());
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  out += text;
  for (const auto& array : arrays)
    out.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(int32_t));
  return out;
}

/// Follows every run that the store lets one follow, as drafting does.
void run_store(const std::string& path) {
  const TextStore store{fs::path(path)};
  int64_t left = 2000;
  const std::function<void(const TextStore::Places&, int)> follow =
      [&](const TextStore::Places& places, int depth) {
        if (depth == 0 || --left < 0) return;
        for (const auto& next : store.continuations(places)) follow(next.places, depth - 1);
      };
  follow(store.find({}), 4);
  for (TokenId token = 0; token <= std::min(store.max_token(), 9); ++token) {
    const TokenId run[] = {token, static_cast<TokenId>(token + 1)};
    (void)store.continuations(store.find(run));
  }
}

// --- folders: an input is the text of its description -------------------------------------------

/// The folder beside the input's file, emptied.
fs::path folder_beside(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path() / "folder";
  fs::remove_all(folder);
  fs::create_directory(folder);
  std::ofstream(folder / "DONE");
  return folder;
}

constexpr const char* kManifest = R"(format: medusa-heads
version: 1
fingerprint: sha256:11
backbone: sha256:22
dataset: sha256:33
mixed_datasets: []
source: ""
step: 10
hidden_size: 4
vocab_size: 8
heads:
  num_heads: 2
  layers_per_head: 1
  input: root
  start: random
  output: truncated_shared
  output_size: 4
  output_rank: 64
num_validation: 5
loss: [1.5, 2.5]
top_1: [.5, .25]
top_5: [.75, .5]
top_10: [1, .5]
)";

/// Tensors of heads as the seed says them, and a few that it does not.
const std::string& head_tensors() {
  static const std::string bytes = [] {
    const fs::path file = fs::temp_directory_path() / fmt::format("heads-{}", getpid());
    write_tensors(file,
                  {{"0.layers.0.weight", at::zeros({4, 8})},
                   {"0.layers.0.bias", at::zeros({4})},
                   {"0.layers.0.second", at::zeros({4, 4})},
                   {"1.layers.0.weight", at::zeros({4, 8})},
                   {"1.layers.0.bias", at::zeros({4})},
                   {"1.layers.0.second", at::zeros({4, 4})},
                   {"kept_tokens", at::arange(4)},
                   {"left_over", at::zeros({1})}},
                  {});
    std::string read = read_file(file);
    fs::remove(file);
    return read;
  }();
  return bytes;
}

void run_manifest(const std::string& path) {
  const fs::path folder = folder_beside(path);
  fs::copy_file(path, folder / "manifest.yaml");
  std::ofstream(folder / "settings.yaml") << "seed: 1\n";
  std::ofstream(folder / "heads.safetensors", std::ios::binary) << head_tensors();
  const HeadsManifest manifest = read_heads_manifest(folder);
  if (manifest.hidden_size != 4 || manifest.vocab_size != 8) return;
  Weights backbone;
  backbone.config.hidden_size = 4;
  backbone.config.vocab_size = 8;
  backbone.fingerprint = "sha256:22";
  backbone.lm_head = at::zeros({8, 4});
  try {
    (void)load_heads(folder, backbone);
  } catch (const UserError&) {  // its fingerprint is another one, if nothing else
  }
}

constexpr const char* kCheckpoint = R"(format: medusa-train-checkpoint
version: 4
step: 10
tokens_per_step: 1.5
unreported: [1, 2.5]
best_tokens_per_step: 1.75
state: STATE
run: ["seed=1", "train.epochs=2"]
)";

std::string checkpoint_seed() {
  std::string text = kCheckpoint;
  return text.replace(text.find("STATE"), 5, fingerprint_text("state"));
}

void run_checkpoint(const std::string& path) {
  const fs::path folder = folder_beside(path);
  const std::string text = read_file(path);
  std::ofstream(folder / "checkpoint.yaml", std::ios::binary)
      << fmt::format("{}checksum: {}\n", text, fingerprint_text(text));
  std::ofstream(folder / "state.safetensors") << "state";
  (void)read_checkpoint(folder);
}

}  // namespace

const std::vector<FuzzTarget>& all_targets() {
  static const std::vector<FuzzTarget> targets = {
      {"settings",
       "run.yaml",
       {kSettings, "backbone: {model: m.gguf}\n"},
       yaml_words({"train:", "heads:", "generate:", "merge:", "stages: [joint]", "prefix",
                   "own_low_rank"}),
       run_settings},
      {"layers.json",
       "layers.json",
       {kLayers},
       json_words({"\"skip\":", "1e999", "18446744073709551616", "\\ud800", "\xFF"}),
       run_layers},
      {.name = "bench.jsonl",
       .file = "bench.jsonl",
       .seeds = {samples_seed()},
       .tokens = json_words({"\"answers\":", "\"tokens\":", "1e999", "-1", "99999999999", "\n",
                             "\\ud800", "\"emitted_per_step\":"}),
       .run = run_samples,
       .file_of = sealed_samples},
      {.name = "events",
       .file = "events.out.tfevents.medusa",
       .seeds = {events_seed()},
       .tokens = {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x2a\x7f", "\x0a", "\x15"},
       .run = run_events,
       .file_of = sealed_events},
      {.name = "store",
       .file = "texts.store",
       .seeds = {kStore},
       .tokens = {"-1", "2147483647", "-2147483648", "\n", " ",
                  "format=", "version=", "num_texts="},
       .run = run_store,
       .file_of = sealed_store,
       .past_findings = {"unaligned=1 " + std::string(kStore)}},
      {"manifest",
       "input.yaml",
       {kManifest},
       yaml_words({"heads:", "num_heads: 16", "own", "sequential", "prefix", "truncated_own",
                   "last_layer", "layers_per_head: "}),
       run_manifest},
      {"checkpoint",
       "input.yaml",
       {checkpoint_seed()},
       yaml_words(
           {"version: 2\n", "version: 3\n", "version: 9\n", "run:", "step: ", "unreported: "}),
       run_checkpoint}};
  return targets;
}

}  // namespace medusa::fuzz
