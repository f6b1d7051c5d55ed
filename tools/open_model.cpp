#include "tools/open_model.h"

#include <ATen/Parallel.h>

#include "base/output.h"
#include "base/stderr_progress.h"

namespace medusa {

Placement place_process(const BackboneSection& config, int64_t local_rank) {
  Placement placement = place(config, local_rank);
  at::set_num_threads(placement.execution.threads);
  return placement;
}

Model open_model(const BackboneSection& config) {
  place_process(config);
  ModelOptions options = config;
  options.progress = stderr_progress();
  options.note = [](std::string_view text) { print_note("{}\n", text); };
  Model model = Model::load(config.model, options);
  // Our kernels have threads of their own. LibTorch's would go on spinning for a while after each
  // parallel op and take the cores away from them; between passes there is no work for LibTorch's.
  if (model.llama->uses_pool()) at::set_num_threads(1);
  return model;
}

}  // namespace medusa
