// medusa train: fits heads, and the backbone if asked to, to the run's dataset.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/dataset_reader.h"
#include "tools/check_dataset.h"
#include "tools/command.h"
#include "tools/dry_run.h"
#include "tools/head_quality.h"
#include "tools/heads_stage.h"
#include "tools/joint_stage.h"
#include "tools/live_report.h"
#include "train/trainer.h"

namespace medusa {
namespace {

nlohmann::ordered_json heads_json(const TrainResult& result, const std::filesystem::path& heads) {
  nlohmann::ordered_json out{{"heads", heads.string()},       {"complete", result.complete},
                             {"steps", result.steps},         {"loss", result.loss},
                             {"positions", result.positions}, {"seconds", result.seconds}};
  if (!result.validation.empty()) out["validation"] = quality_json(result.validation);
  return out;
}

void report(const TrainResult& result, const std::filesystem::path& heads) {
  fmt::print(stderr, "{} optimiser steps, loss {:.3f}, {:.0f} positions/s\n", result.steps,
             result.loss,
             result.seconds > 0 ? static_cast<double>(result.positions) / result.seconds : 0.0);
  print_quality(result.validation);
  if (result.complete)
    fmt::print(stderr, "heads: {}\n", heads.string());
  else
    fmt::print(stderr, "interrupted; run the same command again to continue\n");
}

void run_train(const CommonOptions& options, bool dry) {
  RunConfig config = read_run_config(options);
  config.train.config.seed = config.seed;
  const DatasetReader dataset = open_dataset(config);
  if (dry) return dry_run(config, dataset, options.json);
  LiveReport page(config, dataset);
  const Reported reported = [&page] { page.update(); };
  nlohmann::ordered_json out;
  bool complete = true;  // the stages so far
  for (const TrainStage stage : config.train.stages) {
    if (!complete) break;
    if (stage == TrainStage::Heads) {
      const TrainResult result = run_heads_stage(config, dataset, reported);
      complete = result.complete;
      out = heads_json(result, config.heads_folder());
      report(result, config.heads_folder());
    } else {
      const JointResult result = run_joint_stage(config, dataset, reported);
      complete = result.complete;
      out["joint"] = joint_json(config, result);
      report_joint(config, result);
    }
  }
  page.finish();
  fmt::print(stderr, "report: {}\n", config.report_file().string());
  if (options.json) fmt::print("{}\n", out.dump());
}

}  // namespace

Command train_command() {
  return {"train",
          "train Medusa heads, or heads and backbone together, on the dataset",
          {"backbone", "train"},
          [](CLI::App& app, const CommonOptions& options) {
            const auto dry = std::make_shared<bool>(false);
            app.add_flag("--dry-run", *dry,
                         "say what the run will take and learn from, and stop before it");
            return [&options, dry] { run_train(options, *dry); };
          }};
}

}  // namespace medusa
