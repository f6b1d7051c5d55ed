// medusa train: fits heads, and the backbone if asked to, to the run's dataset.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/output.h"
#include "base/process.h"
#include "base/yaml_fields.h"
#include "data/dataset/dataset_reader.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/measure/acceptance.h"
#include "tools/measure/resources.h"
#include "tools/run/open_model.h"
#include "tools/run/output_check.h"
#include "tools/training/dry_run.h"
#include "tools/training/live_report.h"
#include "tools/training/stage_places.h"
#include "tools/training/stages.h"
#include "train/processes/data_parallel.h"
#include "train/samples/train_inputs.h"
#include "train/trainer.h"

namespace medusa {
namespace {

nlohmann::ordered_json heads_json(const TrainResult& result, const PeakMemory& peak,
                                  const std::filesystem::path& heads) {
  nlohmann::ordered_json out{{"heads", heads.string()},       {"complete", result.complete},
                             {"steps", result.steps},         {"loss", result.loss},
                             {"positions", result.positions}, {"seconds", result.seconds}};
  add_memory(out, peak);
  if (!result.validation.empty()) out["validation"] = quality_json(result.validation);
  return out;
}

void report(const TrainResult& result, const PeakMemory& peak, const std::filesystem::path& heads) {
  if (result.positions == 0)
    print_note("{} optimizer steps, all of them done before\n", result.steps);
  else
    print_note("{} optimizer steps, loss {:.3f}, {:.0f} positions/s{}\n", result.steps, result.loss,
               static_cast<double>(result.positions) / result.seconds, memory_text(peak));
  print_quality(result.validation);
  if (result.complete) print_note("heads: {}\n", heads.string());
}

struct TrainOptions {
  bool dry = false;
  bool fresh = false;
};

constexpr const char* kDetails =
    "Killed and started again it continues. Several processes train together when mpirun, srun or "
    "torchrun starts them: mpirun -n 2 --bind-to none medusa train model.gguf";

/// What several processes cannot do together.
void check_together(const ProcessPlace& place, bool dry) {
  if (place.world_size > 1 && dry)
    throw UserError(fmt::format(
        "train: --dry-run was given to {} processes, expected one; start it without mpirun, srun "
        "or torchrun, it tells what each process takes",
        place.world_size));
}

/// The processes that train with this one; null: none.
std::unique_ptr<ProcessGroup> join(const ProcessPlace& place, const RunConfig& config) {
  if (place.world_size == 1) return nullptr;
  const at::Device device = place_process(config.backbone, place.local_rank).device;
  auto group = join_processes(place, device, config.train.config.peer_timeout_s);
  if (is_first(group.get()))
    print_note("{} processes, sums through {}\n", group->world_size(), group->carrier());
  return group;
}

/// What processes with other settings exchange does not fit together.
void check_same_settings(ProcessGroup* group, RunConfig config) {
  if (group == nullptr) return;
  config.backbone.threads.reset();  // a machine's own
  group->check_same(write_config(config), "has other settings",
                    "give all of them the same command and files");
}

/// The processes of one machine share its CPUs.
void share_cpus(ProcessGroup* group, BackboneSection& backbone) {
  if (group == nullptr) return;
  const std::vector<int> allowed = allowed_cpus();
  const auto [own, processes] = group->own_cpus(allowed);  // all of them ask
  if (backbone.threads) return;
  backbone.threads = own;
  if (is_first(group) && own == 1 && std::thread::hardware_concurrency() >= 2 * processes)
    print_note(
        "each process has {} CPU of {}: the launcher bound it; mpirun --bind-to none, or srun "
        "--cpus-per-task, gives it more\n",
        own, std::thread::hardware_concurrency());
}

/// As one of several processes that is not the first: writes and says nothing.
void help_train(const RunConfig& config, const DatasetReader& dataset,
                const StageOptions& options) {
  for (const StageKind stage : config.train.stages) {
    const bool complete = stage == StageKind::Heads
                              ? run_heads_stage(config, dataset, options).complete
                              : run_joint_stage(config, dataset, options).complete;
    if (!complete) return;
  }
}

/// Where a stage keeps what it continues from.
std::filesystem::path progress_folder(const RunConfig& config, StageKind stage) {
  return stage == StageKind::Heads ? config.train_folder() : config.joint_train_folder();
}

void say_where_heads_run(const RunConfig& config) {
  const HeadInput input = config.train.heads.input;
  if (input == HeadInput::Hidden) return;
  print_note(
      "note: heads with input '{}' run in medusa only; for medusa export train them with --set "
      "train.heads.input=hidden\n",
      enum_name(input));
}

void run_train(const CommonOptions& options, const TrainOptions& own) {
  RunConfig config = read_run_config(options);
  const bool dry = own.dry;
  config.train.config.seed = config.seed;
  const ProcessPlace process = process_place();
  check_together(process, dry);
  check_output_file(config.report_file(), ArtifactKind::Page);
  check_stages(config, own.fresh);
  const auto group = join(process, config);
  check_same_settings(group.get(), config);
  share_cpus(group.get(), config.backbone);
  const DatasetReader dataset = open_dataset(config);
  if (!dataset.complete() && is_first(group.get()))
    print_note("note: the dataset is not finished, found {} answers; medusa distill goes on\n",
               dataset.size());
  if (config.train.has(StageKind::Heads)) check_keep_best(config.train.config, dataset);
  if (dry) return dry_run(config, dataset, options.json);
  StageOptions stage_options{{}, group.get(), replaceable_heads(config, own.fresh), own.fresh};
  if (!is_first(group.get())) return help_train(config, dataset, stage_options);
  const FolderLock lock = lock_run(config, "medusa train");  // of all its processes
  say_where_heads_run(config);
  const at::Device device = place_process(config.backbone, process.local_rank).device;
  LiveReport page(config, dataset);
  stage_options.reported = [&page](const Metrics&) { page.update(); };
  nlohmann::ordered_json out;
  bool complete = true;  // the stages so far
  for (const StageKind stage : config.train.stages) {
    if (!complete) break;
    // What continues has said it. Others would wait while the first process makes a step.
    const bool continues =
        !own.fresh && std::filesystem::exists(progress_folder(config, stage) / "checkpoint");
    if (group == nullptr && !continues) print_estimate(config, dataset, stage);
    reset_peak_memory(device);
    if (stage == StageKind::Heads) {
      const TrainResult result = run_heads_stage(config, dataset, stage_options);
      const PeakMemory peak = peak_memory(device);
      complete = result.complete;
      out = heads_json(result, peak, config.heads_folder());
      report(result, peak, config.heads_folder());
    } else {
      const JointResult result = run_joint_stage(config, dataset, stage_options);
      const PeakMemory peak = peak_memory(device);
      complete = result.complete;
      out["joint"] = joint_json(config, result, peak);
      report_joint(config, result, peak);
    }
  }
  page.finish();
  print_note("report: {}\n", config.report_file().string());
  if (options.json) print_json(out);
  if (!complete)
    print_interrupted(own.fresh);
  else if (config.train.stages.back() == StageKind::Heads)  // a joint stage has said it
    print_next(options, "calibrate");
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .summary = "train Medusa heads, or heads and backbone together, on the dataset",
          .details = kDetails,
          .sections = {"backbone", "train"},
          .settings = {"--heads", "--seed", "--device", "--dtype", "--threads"},
          .examples = {"train model.gguf", "train model.gguf --dry-run",
                       "train --config my.yaml --set train.epochs=4"},
          .attach = [](Options& added, const CommonOptions& options) -> std::function<void()> {
            const auto own = std::make_shared<TrainOptions>();
            added.group("Training");
            added.flag("--dry-run", own->dry,
                       "say what the run will take and learn from, and stop before it");
            added.flag("--fresh", own->fresh,
                       "start anew: remove what earlier training left in the run's folder");
            return [&options, own] { run_train(options, *own); };
          }};
}

}  // namespace medusa
