#include "train/record/checkpoint.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string_view>

#include "backbone/files/safetensors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/replace_folder.h"

namespace medusa {
namespace {

constexpr const char* kCheckpointFormat = "medusa-train-checkpoint";
constexpr int64_t kCheckpointVersion = 2;
constexpr const char* kState = "state.safetensors";
constexpr const char* kDescription = "checkpoint.yaml";

/// checkpoint.yaml, key by key, but for its last line.
struct Description {
  std::string format = kCheckpointFormat;
  int64_t version = kCheckpointVersion;
  CheckpointSummary summary;
  std::string state;

  template <typename Fields>
  void fields(Fields& f) {
    f("format", format, "");
    f("version", version, "");
    f("step", summary.step, "optimiser steps done", at_least<int64_t>(0));
    f("tokens_per_step", summary.tokens_per_step, "expected of it; 0: not measured", at_least(0.0));
    f("state", state, "fingerprint of state.safetensors");
    f("run", summary.run, "what decides the trained heads");
  }
  void validate() const {}
};

/// The last line of checkpoint.yaml: the fingerprint of all lines before it.
constexpr std::string_view kChecksum = "checksum: ";

std::string sealed(const std::string& text) {
  return fmt::format("{}{}{}\n", text, kChecksum, fingerprint_text(text));
}

/// The lines before the last one; nothing if they are not those that were sealed.
std::optional<std::string> unsealed(const std::string& bytes) {
  const size_t end = bytes.rfind(kChecksum);
  if (end == std::string::npos) return std::nullopt;
  std::string text = bytes.substr(0, end);
  if (sealed(text) != bytes) return std::nullopt;
  return text;
}

[[noreturn]] void fail_damaged(const std::filesystem::path& folder,
                               const std::string& found_and_expected) {
  throw UserError(
      fmt::format("{}; the checkpoint is damaged: put a copy of {} in its place, or remove {} to "
                  "train anew",
                  found_and_expected, folder.string(), folder.parent_path().string()));
}

/// Another version need not be sealed as this one is.
void check_version(const std::filesystem::path& folder, const std::string& bytes) {
  const std::string before = fmt::format("format: {}\nversion: ", kCheckpointFormat);
  if (!bytes.starts_with(before)) return;  // the checksum says so
  const std::string version =
      bytes.substr(before.size(), bytes.find('\n', before.size()) - before.size());
  const bool number = version.find_first_not_of("0123456789") == std::string::npos;
  if (!number || version == std::to_string(kCheckpointVersion)) return;
  throw UserError(fmt::format(
      "{}: version {} of the format, expected {}; finish the run with the program that began it, "
      "or remove {} to train anew",
      (folder / kDescription).string(), version, kCheckpointVersion,
      folder.parent_path().string()));
}

/// "train.epochs=2" -> "train.epochs 2".
std::string spoken(const std::string& entry) {
  std::string text = entry;
  if (const size_t equals = text.find('='); equals != std::string::npos) text[equals] = ' ';
  return text;
}

constexpr std::string_view kProcessesKey = "processes=";

/// Settings that say how large a step of one process is; in the identity, of all of them.
struct StepSize {
  std::string_view key;  // "train.batch_positions"
  std::string_view unit;

  bool is_in(const std::string& entry) const { return entry.starts_with(std::string(key) + "="); }
  std::string_view size_in(const std::string& entry) const {
    return std::string_view(entry).substr(key.size() + 1);
  }
  /// Several processes' is not what their settings say: says how it comes about.
  std::string spoken(const std::string& entry, int64_t processes) const {
    return fmt::format("steps of {} {} ({} {})", size_in(entry), unit, processes,
                       processes == 1 ? "process" : "processes together");
  }
};

constexpr StepSize kStepSizes[] = {{"train.batch_positions", "positions"},
                                   {"train.joint.accumulate", "batches"}};

/// Takes the entry out.
int64_t take_processes(RunIdentity& identity) {
  if (identity.empty() || !identity.back().starts_with(kProcessesKey)) return 1;
  const int64_t count = std::atoll(identity.back().c_str() + kProcessesKey.size());
  identity.pop_back();
  return count;
}

void check_identity(const std::filesystem::path& folder, RunIdentity saved, RunIdentity now) {
  const int64_t were = take_processes(saved), are = take_processes(now);
  for (size_t i = 0; i < std::max(saved.size(), now.size()); ++i) {
    const std::string was = i < saved.size() ? saved[i] : "nothing";
    const std::string is = i < now.size() ? now[i] : "nothing";
    if (was == is) continue;
    for (const StepSize& size : kStepSizes)
      if (were + are > 2 && size.is_in(was) && size.is_in(is))
        throw UserError(fmt::format(
            "{}: the checkpoint was made with {}, this run has {}, expected the same, as other "
            "steps are another training; set {} so that it times the processes is {}, or remove "
            "the folder to train anew",
            folder.string(), size.spoken(was, were), size.spoken(is, are), size.key,
            size.size_in(was)));
    throw UserError(
        fmt::format("{}: the checkpoint was made with {}, this run has {}; set it back to "
                    "continue, or remove "
                    "the folder to train anew",
                    folder.string(), spoken(was), spoken(is)));
  }
}

}  // namespace

std::string processes_entry(int64_t count) { return fmt::format("{}{}", kProcessesKey, count); }

RunIdentity dataset_identity(const DatasetReader& dataset) {
  RunIdentity out;
  const auto& sources = dataset.sources();
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string name = i == 0 ? "the dataset" : fmt::format("dataset {}", i + 1);
    const std::string weight =
        sources[i].weight == 1 ? "" : fmt::format(" weight {}", sources[i].weight);
    out.push_back(fmt::format("{}={}{}", name, sources[i].fingerprint, weight));
  }
  return out;
}

void save_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                     const NamedTensors& parameters, const AdamW& optimizer,
                     double tokens_per_step) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors[name] = tensor.detach();
  for (const auto& [name, tensor] : optimizer.moments()) tensors[name] = tensor;
  Description description;
  description.summary = {optimizer.num_steps(), tokens_per_step, identity};
  replace_folder(folder, [&](const std::filesystem::path& fresh) {
    write_tensors(fresh / kState, tensors, {});
    description.state = fingerprint_file(fresh / kState);
    write_file(fresh / kDescription, sealed(write_config(description)));
  });
}

namespace {

Description read_description(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kDescription;
  const std::string bytes = read_file(file);
  check_version(folder, bytes);
  const auto text = unsealed(bytes);
  if (!text)
    fail_damaged(folder, fmt::format("{}: has other bytes than its checksum says, expected those "
                                     "that were written",
                                     file.string()));
  return read_config<Description>(YamlFile::from_text(*text, file.string()));
}

void check_state(const std::filesystem::path& folder, const Description& description) {
  const std::filesystem::path file = folder / kState;
  const std::string found = fingerprint_file(file);
  if (found != description.state)
    fail_damaged(folder, fmt::format("{}: has the fingerprint {}, expected that of {}, {}",
                                     file.string(), short_fingerprint(found), kDescription,
                                     short_fingerprint(description.state)));
}

/// Of this run and whole.
Description check_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity) {
  Description description = read_description(folder);
  check_identity(folder, description.summary.run, identity);
  check_state(folder, description);
  return description;
}

void fill_parameters(const SafetensorsFile& file, const NamedTensors& parameters) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, tensor] : parameters)
    at::Tensor(tensor).copy_(read_tensor(file, name, at::kFloat, tensor.sizes()));
}

}  // namespace

bool has_checkpoint(const std::filesystem::path& folder) {
  if (folder_is_done(folder)) return true;
  if (std::filesystem::exists(folder))
    fail_damaged(folder,
                 fmt::format("{}: has no file DONE, expected a checkpoint that was finished",
                             folder.string()));
  return false;
}

CheckpointSummary read_checkpoint(const std::filesystem::path& folder) {
  Description description = read_description(folder);
  check_state(folder, description);
  return std::move(description.summary);
}

std::optional<double> checkpoint_score(const std::filesystem::path& folder) {
  if (!has_checkpoint(folder)) return std::nullopt;
  return read_description(folder).summary.tokens_per_step;
}

int64_t load_parameters(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters) {
  const Description description = check_checkpoint(folder, identity);
  fill_parameters(SafetensorsFile(folder / kState), parameters);
  return description.summary.step;
}

int64_t load_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters, AdamW& optimizer) {
  if (!has_checkpoint(folder)) return 0;
  const Description description = check_checkpoint(folder, identity);
  const SafetensorsFile file(folder / kState);
  fill_parameters(file, parameters);
  std::vector<at::Tensor> moments;
  for (const auto& [name, tensor] : optimizer.moments())
    moments.push_back(read_tensor(file, name, at::kFloat, tensor.sizes()));
  optimizer.restore(description.summary.step, moments);
  return description.summary.step;
}

}  // namespace medusa
