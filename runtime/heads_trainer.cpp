#include "runtime/heads_trainer.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "backbone/files/load_weights.h"
#include "base/error.h"
#include "base/replace_folder.h"
#include "base/yaml_fields.h"
#include "heads/heads_checkpoint.h"
#include "runtime/check_dataset.h"
#include "runtime/kept_out.h"
#include "runtime/model.h"
#include "runtime/placement.h"

namespace medusa {
namespace {

/// The options under the names that a run's settings have.
struct WrittenOptions {
  struct Train {
    HeadsConfig heads;
    TrainConfig config;

    template <typename Fields>
    void fields(Fields& f) {
      f.section("heads", heads, "");
      config.fields(f);
    }
  };
  uint64_t seed;
  Train train;

  template <typename Fields>
  void fields(Fields& f) {
    f("seed", seed, "");
    f.section("train", train, "");
  }
};

std::string settings_of(const HeadsTrainerOptions& options) {
  std::string settings =
      options.settings.empty()
          ? write_config(WrittenOptions{options.training.seed, {options.shape, options.training}})
          : options.settings;
  if (options.group != nullptr)
    settings += fmt::format("# {} processes, each with train.batch_positions\n",
                            options.group->world_size());
  return settings;
}

/// Loads what training needs, hands it over, and lets go of it.
template <typename Use>
auto with_inputs(const DatasetReader& dataset, const HeadsTrainerOptions& options, const Use& use) {
  const ModelOptions& loading = options.loading;
  const Placement placement =
      place(loading, options.group == nullptr ? 0 : options.group->local_rank());
  const bool may_be_cached = options.training.hidden != HiddenFrom::Online;
  const at::ScalarType dtype = may_be_cached ? training_dtype(loading, placement) : placement.dtype;
  const bool cached = may_be_cached && dataset.has_hidden();  // then no layer is run
  Weights weights =
      cached
          ? load_weights_without_layers(options.model, dtype, placement.device, loading.progress)
          : load_weights(options.model, dtype, placement.device, QuantKind::None, loading.progress);
  check_dataset(dataset, options.model, weights.fingerprint, weights.config);
  const ExecutionContext execution = execution_of(loading, placement);
  std::unique_ptr<Llama> llama;
  Weights ends = weights;  // shares the tensors; training reads embedding and LM head
  ends.layers.clear();
  if (!cached) llama = std::make_unique<Llama>(std::move(weights), execution);
  weights.layers.clear();
  std::optional<LayerWeights> last_layer;
  if (options.shape.start == HeadStart::LastLayer)
    last_layer = load_last_layer(options.model, placement.device);
  std::optional<LoadedHeads> earlier;
  if (!options.begin_with.empty()) {
    earlier = load_heads(options.begin_with, ends);
    check_kept_out(options.begin_with.string(), earlier->manifest, dataset, options.training.seed,
                   options.training.validation_fraction);
  }
  return use(TrainInputs{dataset, ends, llama.get(), options.heads, options.work,
                         settings_of(options), options.reported, options.group, execution,
                         loading.progress, last_layer ? &*last_layer : nullptr,
                         earlier ? &*earlier : nullptr, options.replaceable, options.begin_anew});
}

}  // namespace

HeadsTrainer::HeadsTrainer(HeadsTrainerOptions options) : options_(std::move(options)) {
  expect_named(options_.model, "HeadsTrainerOptions::model");
  expect_named(options_.heads, "HeadsTrainerOptions::heads");
  expect_named(options_.work, "HeadsTrainerOptions::work");
  check_config(options_.loading, "backbone");
  check_config(options_.shape, "train.heads");
  check_config(options_.training, "train");
  namespace fs = std::filesystem;
  if (!options_.begin_with.empty() &&
      fs::weakly_canonical(options_.begin_with) == fs::weakly_canonical(options_.heads))
    throw UserError(
        fmt::format("train.begin_with is {}, where the result goes, expected heads in another "
                    "place, since these would be replaced; name another place for the result",
                    options_.begin_with.string()));
}

ResourceEstimate HeadsTrainer::estimate_resources(const DatasetReader& dataset) const {
  const auto turn = turns_->take("HeadsTrainer", "trainer");
  return with_inputs(dataset, options_, [&](const TrainInputs& inputs) {
    return medusa::estimate_resources(options_.training, options_.shape, inputs);
  });
}

TrainResult HeadsTrainer::run(const DatasetReader& dataset) const {
  const auto turn = turns_->take("HeadsTrainer", "trainer");
  check_replaceable(options_.heads);  // before what may take hours
  return with_inputs(dataset, options_, [&](const TrainInputs& inputs) {
    return train_heads(options_.training, options_.shape, inputs);
  });
}

}  // namespace medusa
