#include "tools/run/open_model.h"

#include <ATen/Parallel.h>

#include <vector>

#include "base/output.h"
#include "base/stderr_progress.h"
#include "tools/run/checked_gpu.h"

namespace medusa {

namespace {

ModelOptions program_options(const BackboneSection& config) {
  ModelOptions options = config;
  options.check_gpu = remembered_gpu_check;
  options.progress = stderr_progress();
  options.note = [](std::string_view text) { print_note("{}\n", text); };
  return options;
}

}  // namespace

Placement place_process(const BackboneSection& config, int64_t local_rank) {
  Placement placement = place(program_options(config), local_rank);
  // The number is the process's: no op of LibTorch's takes one of its own. The program has one
  // model that computes at a time, so it sets it; the library leaves it alone
  // (docs/guide/library.md).
  at::set_num_threads(placement.execution.threads);
  return placement;
}

ModelOptions placed_options(const BackboneSection& config, int64_t local_rank) {
  ModelOptions options = program_options(config);
  const at::Device device = place_process(config, local_rank).device;
  options.device = device.is_cpu() ? DeviceKind::Cpu : DeviceKind::Cuda;  // looked for once
  return options;
}

Model open_model(const BackboneSection& config, bool needs_chat_template) {
  ModelOptions options = placed_options(config);
  options.needs_chat_template = needs_chat_template;
  Model model = Model::load(config.model, options);
  // Our kernels have threads of their own. LibTorch's would go on spinning for a while after each
  // parallel op and take the cores away from them; between passes there is no work for LibTorch's.
  if (model.llama->uses_pool()) at::set_num_threads(1);
  return model;
}

DatasetReader open_dataset(const RunConfig& config) {
  const auto& names = config.train.data;
  const auto& weights = config.train.data_weights;
  if (names.empty()) return DatasetReader(config.dataset_folder());
  std::vector<WeightedFolder> folders;
  for (size_t i = 0; i < names.size(); ++i)
    folders.push_back({names[i], weights.empty() ? 1 : weights[i]});
  return DatasetReader(folders);
}

}  // namespace medusa
