#include "heads/heads_checkpoint.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "backbone/files/safetensors.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/replace_folder.h"
#include "base/yaml_fields.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeadsFormat = "medusa-heads";
constexpr int64_t kHeadsVersion = 1;
constexpr const char* kTensors = "heads.safetensors";
constexpr const char* kManifest = "manifest.yaml";
constexpr const char* kSettings = "settings.yaml";
constexpr const char* kKeptTokens = "kept_tokens";
constexpr const char* kPrefixScale = "prefix.scale";

/// manifest.yaml, key by key.
struct ManifestFields {
  std::string format = kHeadsFormat;
  int64_t version = kHeadsVersion;
  HeadsManifest manifest;
  std::vector<std::string> learned_before;         // a line for each text
  std::vector<double> loss, top_1, top_5, top_10;  // [K] or empty

  template <typename Fields>
  void fields(Fields& f) {
    f("format", format, "");
    f("version", version, "");
    f("fingerprint", manifest.fingerprint, "of the heads");
    f("backbone", manifest.backbone, "fingerprint of the backbone");
    f("dataset", manifest.dataset, "fingerprint of the dataset");
    f("mixed_datasets", manifest.mixed_datasets, "those that it was mixed of");
    f("learned_before", learned_before,
      "datasets of the heads that these began as, with seed and validation_fraction");
    f("source", manifest.source, "where imported heads come from");
    f("training", manifest.training, "fingerprint of all that decided the training");
    f("seed", manifest.seed, "by which samples were kept out of the training");
    f("validation_fraction", manifest.validation_fraction, "the share of them");
    f("step", manifest.step, "optimizer steps");
    f("hidden_size", manifest.hidden_size, "H", at_least<int64_t>(1));
    f("vocab_size", manifest.vocab_size, "V", at_least<int64_t>(1));
    f.section("heads", manifest.config, "what the heads look like");
    f("num_validation", manifest.num_validation, "validation positions");
    f("loss", loss, "validation cross-entropy of each head, nats");
    f("top_1", top_1, "share of positions where the first draft was right, by head");
    f("top_5", top_5, "share where one of the first 5 was");
    f("top_10", top_10, "share where one of the first 10 was");
  }
  void validate() const {}
};

/// What of a config says what the heads are: neither a rank that no output has nor what the heads
/// began as. Heads from before these settings keep their fingerprints.
std::string described(const HeadsConfig& config) {
  std::string text = write_config(config);
  const auto leave_out = [&text](const char* key) {
    const size_t begin = text.find(key);
    text.erase(begin, text.find('\n', begin) + 1 - begin);
  };
  if (!is_low_rank(config.output)) leave_out("output_rank:");
  leave_out("start:");
  if (config.correction_rank == 0) leave_out("correction_rank:");
  return text;
}

constexpr const char* kUnknown = "~";

/// "FINGERPRINT SEED FRACTION", of which the numbers may not be known.
std::string line_of(const LearnedText& text) {
  return fmt::format(
      "{} {} {}", text.dataset, text.seed ? std::to_string(*text.seed) : std::string(kUnknown),
      text.validation_fraction ? number_text(*text.validation_fraction) : std::string(kUnknown));
}

/// @throws UserError  the line is none of line_of()'s.
LearnedText text_of_line(const fs::path& file, const std::string& line) {
  LearnedText out;
  std::istringstream in(line);
  std::string seed, fraction, rest;
  in >> out.dataset >> seed >> fraction;
  const auto number = [&](const std::string& digits, auto& value) {
    if (digits == kUnknown) return true;
    std::istringstream text(digits);
    return static_cast<bool>(text >> value.emplace()) && text.eof();
  };
  if (!in || in >> rest || !number(seed, out.seed) || !number(fraction, out.validation_fraction))
    throw UserError(fmt::format(
        "{}: learned_before has '{}', expected a fingerprint, a seed and a fraction; copy the "
        "heads anew or train them again",
        file.string(), line));
  return out;
}

/// Of config and tensors as they are stored.
std::string fingerprint_of(const HeadsConfig& config, const SafetensorsFile& file) {
  Fingerprint hash;
  hash.add(described(config));
  for (const SafetensorsEntry& entry : file.entries()) {
    hash.add(entry.name).add(entry.dtype).add(static_cast<int64_t>(entry.shape.size()));
    for (const int64_t size : entry.shape) hash.add(size);
    hash.add(entry.bytes);
  }
  return hash.digest();
}

std::string manifest_text(const HeadsManifest& manifest) {
  ManifestFields fields;
  fields.manifest = manifest;
  for (const LearnedText& text : manifest.learned_before)
    fields.learned_before.push_back(line_of(text));
  for (const HeadQuality& quality : manifest.quality) {
    fields.loss.push_back(quality.loss);
    fields.top_1.push_back(quality.top_1);
    fields.top_5.push_back(quality.top_5);
    fields.top_10.push_back(quality.top_10);
  }
  return write_config(fields);
}

void check_folder(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw UserError(
        fmt::format("{}: {}, expected trained heads; run 'medusa train' or pass another folder",
                    folder.string(), fs::exists(folder) ? "no folder" : "there is no such folder"));
  if (!folder_is_done(folder))
    throw UserError(
        fmt::format("{}: no DONE file, expected a folder that 'medusa train' finished; run 'medusa "
                    "train' again "
                    "or pass another folder",
                    folder.string()));
}

/// Fills the tensors of heads, whose config and sizes are set.
void read_parameters(const SafetensorsFile& file, MedusaHeads& heads, const Weights& backbone) {
  const at::Device device = backbone.lm_head.device();
  const auto read = [&](const std::string& name, at::IntArrayRef shape) {
    return read_tensor(file, name, at::kFloat, shape).to(device);
  };
  const int64_t h = heads.hidden_size;
  for (int64_t head = 0; head < heads.config.num_heads; ++head) {
    const int64_t num_read = tokens_read(heads.config.input, head);
    for (int64_t layer = 0; layer < heads.config.layers_per_head; ++layer) {
      const std::string prefix = fmt::format("{}.layers.{}.", head, layer);
      heads.blocks.push_back({read(prefix + "weight", {h, (1 + num_read) * h}),
                              read(prefix + "bias", {h}),
                              num_read > 0 ? read(prefix + "second", {h, h}) : at::Tensor()});
    }
    const int64_t r = heads.config.output_rank;
    const bool low_rank = is_low_rank(heads.config.output);
    if (is_own(heads.config.output))
      heads.outputs.push_back(
          read(fmt::format("{}.output", head), {heads.output_rows(), low_rank ? r : h}));
    if (low_rank) heads.downs.push_back(read(fmt::format("{}.output_down", head), {r, h}));
  }
  if (const int64_t rank = heads.config.correction_rank; rank > 0) {
    heads.correction =
        DraftCorrection{read("correction.table", {heads.output_rows() + 1, rank}), {}};
    for (int64_t head = 1; head < heads.config.num_heads; ++head)
      heads.correction->factors.push_back(
          read(fmt::format("{}.correction", head), {heads.output_rows(), rank}));
  }
  if (has_prefix(heads.config.input)) {
    heads.prefix = empty_prefix_layer(backbone.config);
    for (const PrefixPart& part : prefix_parts(*heads.prefix))
      *part.tensor = read("prefix." + part.name, part.sizes);
    if (heads.config.start == HeadStart::LastLayer) {
      heads.prefix->scale = read(kPrefixScale, {h});
      heads.prefix->final_norm = backbone.final_norm;
    }
  }
}

void read_kept_tokens(const SafetensorsFile& file, MedusaHeads& heads) {
  const at::Tensor kept = read_tensor(file, kKeptTokens, at::kInt, {heads.config.output_size});
  heads.kept_tokens.assign(kept.data_ptr<int32_t>(), kept.data_ptr<int32_t>() + kept.numel());
  const auto& tokens = heads.kept_tokens;
  if (tokens.front() < 0 || tokens.back() >= heads.vocab_size ||
      std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) != tokens.end())
    throw UserError(fmt::format(
        "{}: '{}' is not an ascending list of tokens below {}, expected one; the file is damaged, "
        "train again",
        file.path().string(), kKeptTokens, heads.vocab_size));
}

void check_nothing_left(const SafetensorsFile& file, const MedusaHeads& heads) {
  std::set<std::string> known;
  for (const auto& [name, tensor] : named_parameters(heads)) known.insert(name);
  if (!heads.kept_tokens.empty()) known.insert(kKeptTokens);
  if (heads.config.start == HeadStart::LastLayer) known.insert(kPrefixScale);
  for (const SafetensorsEntry& entry : file.entries())
    if (!known.contains(entry.name))
      throw UserError(fmt::format(
          "{}: tensor '{}' belongs to no part of these heads, expected only what manifest.yaml "
          "describes; the folder is a mixture, train again",
          file.path().string(), entry.name));
}

}  // namespace

void check_trained_on(const std::string& backbone, const fs::path& folder,
                      const HeadsManifest& manifest) {
  if (manifest.backbone != backbone)
    throw UserError(fmt::format(
        "{}: trained on the backbone {}, the backbone given is {}; pass the other "
        "backbone or train "
        "heads for this one",
        folder.string(), short_fingerprint(manifest.backbone), short_fingerprint(backbone)));
}

void save_heads(const fs::path& folder, const MedusaHeads& heads, at::ScalarType dtype,
                HeadsManifest& manifest) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, tensor] : named_parameters(heads))
    tensors[name] = tensor.detach().to(at::kCPU, dtype).contiguous();
  if (!heads.kept_tokens.empty()) tensors[kKeptTokens] = at::tensor(heads.kept_tokens, at::kInt);
  if (heads.prefix && heads.prefix->scale.defined())
    tensors[kPrefixScale] = heads.prefix->scale.to(at::kCPU, at::kFloat).contiguous();
  manifest.config = heads.config;
  manifest.hidden_size = heads.hidden_size;
  manifest.vocab_size = heads.vocab_size;
  replace_folder(folder, [&](const fs::path& fresh) {
    write_tensors(fresh / kTensors, tensors, {{"format", "pt"}});
    manifest.fingerprint = fingerprint_of(heads.config, SafetensorsFile(fresh / kTensors));
    write_file(fresh / kManifest, manifest_text(manifest));
    write_file(fresh / kSettings, manifest.settings);
  });
}

std::vector<LearnedText> learned_texts(const HeadsManifest& manifest) {
  std::vector<LearnedText> texts = manifest.learned_before;
  const auto add = [&](const std::string& dataset) {
    if (!dataset.empty()) texts.push_back({dataset, manifest.seed, manifest.validation_fraction});
  };
  add(manifest.dataset);
  for (const std::string& line : manifest.mixed_datasets) add(line.substr(0, line.find(' ')));
  return texts;
}

HeadsManifest read_heads_manifest(const fs::path& folder) {
  check_folder(folder);
  const YamlFile yaml(folder / kManifest);
  auto fields = read_config<ManifestFields>(yaml);
  if (fields.format != kHeadsFormat || fields.version != kHeadsVersion)
    throw UserError(fmt::format(
        "{}: format '{}' version {}, expected '{}' version {}; train the heads again",
        (folder / kManifest).string(), fields.format, fields.version, kHeadsFormat, kHeadsVersion));
  for (const std::string& line : fields.learned_before)
    fields.manifest.learned_before.push_back(text_of_line(folder / kManifest, line));
  const auto num_heads = static_cast<size_t>(fields.manifest.config.num_heads);
  for (const auto* list : {&fields.top_1, &fields.top_5, &fields.top_10, &fields.loss})
    if (!fields.loss.empty() && list->size() != num_heads)
      throw UserError(fmt::format(
          "{}: a list of measurements has {} numbers, expected one for each of {} heads; train the "
          "heads again",
          (folder / kManifest).string(), list->size(), num_heads));
  for (size_t k = 0; k < fields.loss.size(); ++k)
    fields.manifest.quality.push_back(
        {fields.loss[k], fields.top_1[k], fields.top_5[k], fields.top_10[k]});
  fields.manifest.settings = read_file(folder / kSettings);
  return fields.manifest;
}

LoadedHeads load_heads(const fs::path& folder, const Weights& backbone) {
  LoadedHeads loaded{{}, at::kFloat, read_heads_manifest(folder)};
  const HeadsManifest& manifest = loaded.manifest;
  check_trained_on(backbone.fingerprint, folder, manifest);
  MedusaHeads& heads = loaded.heads;
  heads.config = manifest.config;
  heads.hidden_size = backbone.config.hidden_size;
  heads.vocab_size = backbone.config.vocab_size;
  const SafetensorsFile file(folder / kTensors);
  if (is_truncated(heads.config.output)) read_kept_tokens(file, heads);
  loaded.dtype = stored_type(file, "0.layers.0.weight");
  read_parameters(file, heads, backbone);
  check_nothing_left(file, heads);
  if (const std::string found = fingerprint_of(heads.config, file); found != manifest.fingerprint)
    throw UserError(fmt::format(
        "{}: the heads have the fingerprint {}, manifest.yaml says {}; the folder was altered, "
        "train "
        "again or copy it anew",
        folder.string(), short_fingerprint(found), short_fingerprint(manifest.fingerprint)));
  return loaded;
}

}  // namespace medusa
