#include "train/checkpoint.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string_view>

#include "backbone/safetensors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/replace_folder.h"

namespace medusa {
namespace {

constexpr const char* kCheckpointFormat = "medusa-train-checkpoint";
constexpr int64_t kCheckpointVersion = 1;
constexpr const char* kState = "state.safetensors";
constexpr const char* kDescription = "checkpoint.yaml";

/// checkpoint.yaml, key by key.
struct Description {
  std::string format = kCheckpointFormat;
  int64_t version = kCheckpointVersion;
  int64_t step = 0;
  double tokens_per_step = 0;
  RunIdentity run;

  template <typename Fields>
  void fields(Fields& f) {
    f("format", format, "");
    f("version", version, "");
    f("step", step, "optimiser steps done", at_least<int64_t>(0));
    f("tokens_per_step", tokens_per_step, "expected of it; 0: not measured", at_least(0.0));
    f("run", run, "what decides the trained heads");
  }
  void validate() const {}
};

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
  description.step = optimizer.num_steps();
  description.tokens_per_step = tokens_per_step;
  description.run = identity;
  replace_folder(folder, [&](const std::filesystem::path& fresh) {
    write_tensors(fresh / kState, tensors, {});
    write_file(fresh / kDescription, write_config(description));
  });
}

namespace {

Description read_description(const std::filesystem::path& folder, const RunIdentity& identity) {
  auto description = read_config<Description>(YamlFile(folder / kDescription));
  if (description.format != kCheckpointFormat || description.version != kCheckpointVersion)
    throw UserError(fmt::format(
        "{}: format '{}' version {}, expected '{}' version {}; remove the folder to train anew",
        (folder / kDescription).string(), description.format, description.version,
        kCheckpointFormat, kCheckpointVersion));
  check_identity(folder, description.run, identity);
  return description;
}

void fill_parameters(const SafetensorsFile& file, const NamedTensors& parameters) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, tensor] : parameters)
    at::Tensor(tensor).copy_(read_tensor(file, name, at::kFloat, tensor.sizes()));
}

}  // namespace

std::optional<double> checkpoint_score(const std::filesystem::path& folder) {
  if (!folder_is_done(folder)) return std::nullopt;
  return read_config<Description>(YamlFile(folder / kDescription)).tokens_per_step;
}

int64_t load_parameters(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters) {
  const Description description = read_description(folder, identity);
  fill_parameters(SafetensorsFile(folder / kState), parameters);
  return description.step;
}

int64_t load_checkpoint(const std::filesystem::path& folder, const RunIdentity& identity,
                        const NamedTensors& parameters, AdamW& optimizer) {
  if (!folder_is_done(folder)) return 0;
  const Description description = read_description(folder, identity);
  const SafetensorsFile file(folder / kState);
  fill_parameters(file, parameters);
  std::vector<at::Tensor> moments;
  for (const auto& [name, tensor] : optimizer.moments())
    moments.push_back(read_tensor(file, name, at::kFloat, tensor.sizes()));
  optimizer.restore(description.step, moments);
  return description.step;
}

}  // namespace medusa
