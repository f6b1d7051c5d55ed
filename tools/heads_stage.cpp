#include "tools/heads_stage.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "backbone/files/load_weights.h"
#include "base/stderr_progress.h"
#include "base/yaml_fields.h"
#include "tools/check_dataset.h"
#include "tools/open_model.h"

namespace medusa {
namespace {

/// Loads what the stage needs, hands it over, and lets go of it.
template <typename Use>
auto with_inputs(const RunConfig& config, const DatasetReader& dataset, ProcessGroup* group,
                 const Use& use) {
  const Placement placement =
      place_process(config.backbone, group == nullptr ? 0 : group->local_rank());
  const bool may_be_cached = config.train.config.hidden != HiddenFrom::Online;
  const at::ScalarType dtype =
      may_be_cached ? training_dtype(config.backbone, placement) : placement.dtype;
  const bool cached = may_be_cached && dataset.has_hidden();  // then no layer is run
  Weights weights = cached ? load_weights_without_layers(config.backbone.model, dtype,
                                                         placement.device, stderr_progress())
                           : load_weights(config.backbone.model, dtype, placement.device,
                                          QuantKind::None, stderr_progress());
  check_dataset(dataset, config, weights.fingerprint, weights.config);
  const ExecutionContext execution(placement.execution);
  std::unique_ptr<Llama> llama;
  Weights ends = weights;  // shares the tensors; training reads embedding and LM head
  ends.layers.clear();
  if (!cached) llama = std::make_unique<Llama>(std::move(weights), execution);
  weights.layers.clear();
  std::string settings = write_config(config);
  if (group != nullptr)
    settings +=
        fmt::format("# {} processes, each with train.batch_positions\n", group->world_size());
  return use(TrainInputs{dataset,
                         ends,
                         llama.get(),
                         config.heads_folder(),
                         config.train_folder(),
                         settings,
                         {},
                         group,
                         execution,
                         stderr_progress()});
}

}  // namespace

TrainResult run_heads_stage(const RunConfig& config, const DatasetReader& dataset,
                            const Reported& reported, ProcessGroup* group) {
  return with_inputs(config, dataset, group, [&](TrainInputs inputs) {
    inputs.reported = reported;
    return train_heads(config.train.config, config.train.heads, inputs);
  });
}

ResourceEstimate estimate_heads_resources(const RunConfig& config, const DatasetReader& dataset) {
  return with_inputs(config, dataset, nullptr, [&](const TrainInputs& inputs) {
    return estimate_resources(config.train.config, config.train.heads, inputs);
  });
}

}  // namespace medusa
