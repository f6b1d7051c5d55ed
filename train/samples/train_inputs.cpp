#include "train/samples/train_inputs.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/fingerprint.h"
#include "data/dataset/sample_order.h"

namespace medusa {
namespace {

/// Which of several it is, and what it holds.
std::string dataset_without_hidden(const DatasetReader& dataset) {
  for (const DatasetSource& source : dataset.sources()) {
    if (source.num_hidden == source.count) continue;
    const std::string name = dataset.sources().size() > 1 ? source.folder.string() : "the dataset";
    return source.num_hidden == 0
               ? name + " holds no hidden states"
               : fmt::format("{} holds the hidden states of {} of its {} samples", name,
                             source.num_hidden, source.count);
  }
  return "the dataset holds no samples";
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

void check_trunk_gradient(const SharedTrainConfig& config, const HeadsConfig& heads) {
  if (config.trunk_gradient == 1 || has_prefix(heads.input)) return;
  throw UserError(fmt::format(
      "train: 'trunk_gradient' is {}, and heads of input {} have no prefix layer whose "
      "gradient it shares out, expected 1; leave it out, or set heads.input to prefix or "
      "prefix_sequential",
      config.trunk_gradient, enum_name(heads.input)));
}

void check_keep_best(const TrainConfig& config, const DatasetReader& dataset) {
  if (!config.keep_best) return;
  const double fraction = config.validation_fraction;
  if (!split_dataset(Random(config.seed), dataset, fraction).validation.empty()) return;
  throw UserError(fmt::format(
      "train.keep_best: train.validation_fraction {} keeps none of {} samples out of training, "
      "expected some that judge; raise it, distil more text, or leave keep_best out",
      number_text(fraction), dataset.size()));
}

void check_heads_fit(const HeadsConfig& heads, const ModelConfig& backbone) {
  if (is_truncated(heads.output) && heads.output_size > backbone.vocab_size)
    throw UserError(fmt::format(
        "heads: 'output_size' is {}, the backbone's vocabulary has {} tokens, expected at most "
        "that many; lower it, or set 'output' to shared or own",
        heads.output_size, backbone.vocab_size));
  const int64_t h = backbone.hidden_size;
  if (is_low_rank(heads.output) && heads.output_rank > h)
    throw UserError(fmt::format(
        "heads: 'output_rank' is {}, the backbone's states have {} numbers, expected at most that "
        "many; lower it, or set 'output' to {}",
        heads.output_rank, h, is_truncated(heads.output) ? "truncated_own" : "own"));
  if (heads.correction_rank > h)
    throw UserError(fmt::format(
        "heads: 'correction_rank' is {}, the backbone's embeddings have {} numbers, expected at "
        "most that many; lower it",
        heads.correction_rank, h));
}

void check_earlier(const HeadsConfig& heads, const HeadsConfig& earlier) {
  HeadsConfig is = heads, was = earlier;
  FieldLister now("train.heads"), then("train.heads");
  is.fields(now);
  was.fields(then);
  for (size_t i = 0; i < now.lines().size(); ++i) {
    const FieldHelp &line = now.lines()[i], &before = then.lines()[i];
    const bool new_correction =
        line.key == "train.heads.correction_rank" && earlier.correction_rank == 0;
    if (!line.decides || new_correction || line.value == before.value) continue;
    throw UserError(fmt::format(
        "train: the heads of 'begin_with' have {} {}, these heads have {}, expected the same, but "
        "for a correction that the earlier ones lack; set it to {}, or leave 'begin_with' out",
        line.key, before.value, line.value, before.value));
  }
}

void check_inputs(const TrainConfig& config, const HeadsConfig& heads, const TrainInputs& inputs) {
  check_backbone(inputs.dataset, inputs.backbone);
  check_trunk_gradient(config, heads);
  if (config.hidden == HiddenFrom::Offline && !inputs.dataset.has_hidden())
    throw UserError(
        fmt::format("train: 'hidden' is cached, {}, expected those of all; set it to auto, or "
                    "distil with record_hidden: true and no states_budget_mb",
                    dataset_without_hidden(inputs.dataset)));
  check_heads_fit(heads, inputs.backbone.config);
  if (inputs.earlier != nullptr) check_earlier(heads, inputs.earlier->manifest.config);
}

HiddenSource open_hidden(const TrainConfig& config, const TrainInputs& inputs) {
  const bool all_online = config.hidden == HiddenFrom::Online;
  if (inputs.llama == nullptr && (all_online || !inputs.dataset.has_hidden()))
    throw UserError(
        fmt::format("train: {} and no backbone is loaded, expected one of them; distil with "
                    "record_hidden: true",
                    all_online ? "'hidden' is live" : dataset_without_hidden(inputs.dataset)));
  return all_online ? online_hidden(inputs.dataset, *inputs.llama)
                    : recorded_hidden(inputs.dataset, inputs.llama);
}

}  // namespace medusa
