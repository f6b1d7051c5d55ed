#include "train/record/checkpoint.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <map>
#include <string_view>

#include "backbone/files/safetensors.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/replace_folder.h"
#include "base/yaml_fields.h"

namespace medusa {
namespace {

constexpr const char* kCheckpointFormat = "medusa-train-checkpoint";
constexpr int64_t kCheckpointVersion = 4;
constexpr int64_t kOldestVersion = 2;  // without unreported; version 3 without best_tokens_per_step
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
    f("step", summary.step, "optimizer steps done", at_least<int64_t>(0));
    f("tokens_per_step", summary.notes.tokens_per_step, "expected of it; 0: not measured",
      at_least(0.0));
    f("unreported", summary.notes.unreported, "sums over the steps since the last report");
    f("best_tokens_per_step", summary.notes.best_tokens_per_step,
      "expected of the best checkpoint; 0: there was none", at_least(0.0));
    f("state", state, "fingerprint of state.safetensors");
    f("run", summary.run, "what decides the run");
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
  throw UserError(fmt::format(
      "{}; the checkpoint is damaged: put a copy of {} in its place, or train anew with "
      "--fresh",
      found_and_expected, folder.string()));
}

/// Another version need not be sealed as this one is.
void check_version(const std::filesystem::path& folder, const std::string& bytes) {
  const std::string before = fmt::format("format: {}\nversion: ", kCheckpointFormat);
  if (!bytes.starts_with(before)) return;  // the checksum says so
  const std::string version =
      bytes.substr(before.size(), bytes.find('\n', before.size()) - before.size());
  const bool number = version.find_first_not_of("0123456789") == std::string::npos;
  if (!number) return;
  for (int64_t known = kOldestVersion; known <= kCheckpointVersion; ++known)
    if (version == std::to_string(known)) return;
  throw UserError(fmt::format(
      "{}: version {} of the format, expected {} to {}; finish the run with the program that began "
      "it, or train anew with --fresh",
      (folder / kDescription).string(), version, kOldestVersion, kCheckpointVersion));
}

}  // namespace

void save_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                     const NamedTensors& parameters, const AdamW& optimizer,
                     const CheckpointNotes& notes) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors[name] = tensor.detach();
  for (const auto& [name, tensor] : optimizer.moments()) tensors[name] = tensor;
  Description description;
  description.summary = {optimizer.num_steps(), notes, identity.entries()};
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
  identity.check(folder, description.summary.run);
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
  return read_description(folder).summary.notes.tokens_per_step;
}

int64_t load_parameters(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters) {
  const Description description = check_checkpoint(folder, identity);
  fill_parameters(SafetensorsFile(folder / kState), parameters);
  return description.summary.step;
}

int64_t load_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters, AdamW& optimizer, CheckpointNotes* notes) {
  if (!has_checkpoint(folder)) return 0;
  const Description description = check_checkpoint(folder, identity);
  const SafetensorsFile file(folder / kState);
  fill_parameters(file, parameters);
  std::vector<at::Tensor> moments;
  for (const auto& [name, tensor] : optimizer.moments())
    moments.push_back(read_tensor(file, name, at::kFloat, tensor.sizes()));
  optimizer.restore(description.summary.step, moments);
  if (notes != nullptr) *notes = description.summary.notes;
  return description.summary.step;
}

}  // namespace medusa
