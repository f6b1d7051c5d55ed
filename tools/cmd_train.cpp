// medusa train: fits heads, and the backbone if asked to, to the run's dataset.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/progress.h"
#include "data/dataset_reader.h"
#include "tools/check_dataset.h"
#include "tools/command.h"
#include "tools/joint_stage.h"
#include "tools/session.h"
#include "train/trainer.h"

namespace medusa {
namespace {

nlohmann::ordered_json heads_json(const TrainResult& result, const std::filesystem::path& heads) {
  nlohmann::ordered_json out{{"heads", heads.string()},       {"complete", result.complete},
                             {"steps", result.steps},         {"loss", result.loss},
                             {"positions", result.positions}, {"seconds", result.seconds}};
  for (const HeadQuality& head : result.validation)
    out["validation"].push_back({{"loss", head.loss},
                                 {"top_1", head.top_1},
                                 {"top_5", head.top_5},
                                 {"top_10", head.top_10}});
  return out;
}

void report(const TrainResult& result, const std::filesystem::path& heads) {
  fmt::print(stderr, "{} optimiser steps, loss {:.3f}, {:.0f} positions/s\n", result.steps,
             result.loss,
             result.seconds > 0 ? static_cast<double>(result.positions) / result.seconds : 0.0);
  for (size_t k = 0; k < result.validation.size(); ++k) {
    const HeadQuality& head = result.validation[k];
    fmt::print(stderr, "head {}: top-1 {:.3f}  top-5 {:.3f}  top-10 {:.3f}\n", k, head.top_1,
               head.top_5, head.top_10);
  }
  if (result.complete)
    fmt::print(stderr, "heads: {}\n", heads.string());
  else
    fmt::print(stderr, "interrupted; run the same command again to continue\n");
}

TrainResult run_heads_stage(const RunConfig& config, const DatasetReader& dataset) {
  const Placement placement = place(config.backbone);
  const bool may_be_cached = config.train.config.hidden != HiddenFrom::Live;
  const at::ScalarType dtype =
      may_be_cached ? training_dtype(config.backbone, placement) : placement.dtype;
  Weights weights = load_weights(config.backbone.model, dtype, placement.device);
  const bool own_states = check_dataset(dataset, config, weights.fingerprint);
  const bool cached = may_be_cached && own_states && dataset.has_hidden();
  std::unique_ptr<Llama> llama;
  Weights ends = weights;  // shares the tensors; training reads embedding and LM head
  ends.layers.clear();
  if (!cached) llama = std::make_unique<Llama>(std::move(weights));
  weights.layers.clear();

  const TrainInputs inputs{dataset,
                           ends,
                           llama.get(),
                           config.heads_folder(),
                           config.train_folder(),
                           write_config(config)};
  return train_heads(config.train.config, config.train.heads, inputs);
}

void run(const CommonOptions& options) {
  RunConfig config = read_run_config(options);
  config.train.config.seed = config.seed;
  const DatasetReader dataset(config.dataset_folder());
  nlohmann::ordered_json out;
  bool complete = true;  // the stages so far
  for (const TrainStage stage : config.train.stages) {
    if (!complete) break;
    if (stage == TrainStage::Heads) {
      const TrainResult result = run_heads_stage(config, dataset);
      complete = result.complete;
      out = heads_json(result, config.heads_folder());
      report(result, config.heads_folder());
    } else {
      const JointResult result = run_joint_stage(config, dataset);
      complete = result.complete;
      out["joint"] = joint_json(config, result);
      report_joint(config, result);
    }
  }
  if (options.json) fmt::print("{}\n", out.dump());
}

}  // namespace

Command train_command() {
  return {"train",
          "train Medusa heads on the dataset",
          {"backbone", "train"},
          [](CLI::App&, const CommonOptions& options) { return [&options] { run(options); }; }};
}

}  // namespace medusa
