#include "train/train_inputs.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/fingerprint.h"

namespace medusa {
namespace {

bool use_cached(const TrainConfig& config, const DatasetReader& dataset) {
  return config.hidden == HiddenFrom::Cached ||
         (config.hidden == HiddenFrom::Auto && dataset.has_hidden());
}

/// Which of several it is.
std::string dataset_without_hidden(const DatasetReader& dataset) {
  const auto& sources = dataset.sources();
  if (sources.size() > 1)
    for (const DatasetSource& source : sources)
      if (!source.has_hidden) return source.folder.string();
  return "the dataset";
}

}  // namespace

void check_backbone(const DatasetReader& dataset, const Weights& backbone) {
  const std::string& wrote = dataset.info().backbone;
  if (wrote != backbone.fingerprint)
    throw UserError(fmt::format(
        "train: the dataset was written by the backbone {}, the backbone given is {}, expected the "
        "same one; pass the other backbone or distil again",
        short_fingerprint(wrote), short_fingerprint(backbone.fingerprint)));
}

void check_inputs(const TrainConfig& config, const HeadsConfig& heads, const TrainInputs& inputs) {
  check_backbone(inputs.dataset, inputs.backbone);
  if (config.hidden == HiddenFrom::Cached && !inputs.dataset.has_hidden())
    throw UserError(
        fmt::format("train: 'hidden' is cached, {} holds no hidden states, expected some; set it "
                    "to live, or distil with record_hidden: true",
                    dataset_without_hidden(inputs.dataset)));
  const int64_t v = inputs.backbone.config.vocab_size;
  if (is_truncated(heads.output) && heads.output_size > v)
    throw UserError(fmt::format(
        "heads: 'output_size' is {}, the backbone's vocabulary has {} tokens, expected at most "
        "that many; lower it, or set 'output' to shared or own",
        heads.output_size, v));
  const int64_t h = inputs.backbone.config.hidden_size;
  if (is_low_rank(heads.output) && heads.output_rank > h)
    throw UserError(fmt::format(
        "heads: 'output_rank' is {}, the backbone's states have {} numbers, expected at most that "
        "many; lower it, or set 'output' to {}",
        heads.output_rank, h, is_truncated(heads.output) ? "truncated_own" : "own"));
}

HiddenSource open_hidden(const TrainConfig& config, const TrainInputs& inputs) {
  if (use_cached(config, inputs.dataset)) return cached_hidden(inputs.dataset);
  if (inputs.llama == nullptr)
    throw UserError(
        "train: the dataset holds no hidden states and no backbone is loaded, expected one of "
        "them; distil with record_hidden: true");
  return live_hidden(inputs.dataset, *inputs.llama);
}

}  // namespace medusa
