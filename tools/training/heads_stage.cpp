#include "tools/training/heads_stage.h"

#include <utility>

#include "base/yaml_fields.h"
#include "runtime/heads_trainer.h"
#include "tools/run/open_model.h"
#include "train/processes/data_parallel.h"

namespace medusa {
namespace {

HeadsTrainer trainer_of(const RunConfig& config, const Reported& reported, ProcessGroup* group) {
  HeadsTrainerOptions options;
  options.model = config.backbone.model;
  options.loading = placed_options(config.backbone, group == nullptr ? 0 : group->local_rank());
  if (!is_first(group)) options.loading.progress = {};
  options.shape = config.train.heads;
  options.training = config.train.config;
  options.begin_with = config.train.begin_with.value_or("");
  options.heads = config.heads_folder();
  options.work = config.train_folder();
  options.settings = write_config(config);
  options.reported = reported;
  options.group = group;
  return HeadsTrainer(std::move(options));
}

}  // namespace

TrainResult run_heads_stage(const RunConfig& config, const DatasetReader& dataset,
                            const Reported& reported, ProcessGroup* group) {
  return trainer_of(config, reported, group).run(dataset);
}

ResourceEstimate estimate_heads_resources(const RunConfig& config, const DatasetReader& dataset) {
  return trainer_of(config, {}, nullptr).estimate_resources(dataset);
}

}  // namespace medusa
