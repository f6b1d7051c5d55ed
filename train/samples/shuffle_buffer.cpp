#include "train/samples/shuffle_buffer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"

namespace medusa {

BatchRecipe batch_recipe(const SharedTrainConfig& config, const MedusaHeads& heads,
                         const Weights& backbone, std::span<const int32_t> label_rows) {
  BatchRecipe recipe{.backbone = backbone,
                     .num_heads = heads.config.num_heads,
                     .num_tokens = tokens_read(heads.config.input, heads.config.num_heads - 1),
                     .whole_answers = heads.prefix.has_value(),
                     .label_row = label_rows,
                     .embedding_gain = embedding_gain(backbone),
                     .soft_output = {},
                     .objective = config.objective,
                     .chunk = config.chunk_positions};
  if (config.labels == LabelKind::Soft) {
    recipe.soft_output = shared_output(heads, backbone);
    recipe.soft_size = std::min(config.soft_top, heads.output_rows());
  }
  return recipe;
}

int64_t num_positions(const DatasetReader& dataset, int64_t sample) {
  return static_cast<int64_t>(dataset.answer(sample).size()) -
         1;  // the last token has no successor
}

ShuffleBuffer::ShuffleBuffer(const DatasetReader& dataset, std::span<const int64_t> samples,
                             const HiddenSource& hidden, const BatchRecipe& recipe)
    : recipe_(recipe) {
  std::vector<at::Tensor> states;
  for (const int64_t sample : samples) {
    const auto answer = dataset.answer(sample);
    const auto first = static_cast<int64_t>(tokens_.size());
    const auto length = static_cast<int64_t>(answer.size());
    for (int64_t i = 0; i + 1 < length; ++i) positions_.push_back({first + i, length - 1 - i});
    tokens_.insert(tokens_.end(), answer.begin(), answer.end());
    states.push_back(hidden(sample));
    MEDUSA_ASSERT(states.back().size(0) == length, sample, length);
    answers_.lengths.push_back(length);
  }
  // One of several processes may have none.
  hidden_ = states.empty() ? at::empty({0, recipe.backbone.config.hidden_size}, at::kBFloat16)
                           : at::cat(states);
  if (recipe.soft_output.defined())
    soft_ = make_soft_labels(hidden_, recipe.soft_output, recipe.soft_size, recipe.chunk);
  if (recipe.whole_answers) add_answers();
}

void ShuffleBuffer::add_answers() {
  const at::Tensor& embedding = recipe_.backbone.embedding;
  answers_.hidden = hidden_.to(embedding.device(), embedding.scalar_type());
  const at::Tensor roots =
      at::tensor(tokens_, at::kInt).view({std::ssize(tokens_), 1}).to(embedding.device());
  answers_.roots = token_embeddings(recipe_.backbone, recipe_.embedding_gain, roots).squeeze(1);
}

void ShuffleBuffer::add_labels(int64_t head, const Position& position, Batch& batch) const {
  const bool ends_before = position.behind < 1 + head;
  // Where the text ends any row will do: it is not looked at.
  const int64_t row = ends_before ? position.row : position.row + 1 + head;
  if (ends_before) {
    batch.labels.push_back(kNoLabel);
  } else {
    const int32_t label = recipe_.label_row[static_cast<size_t>(tokens_[static_cast<size_t>(row)])];
    batch.labels.push_back(label < 0 ? kLabelNotKept : label);
  }
  if (soft_.size == 0) return;
  const auto rows = soft_.rows_of(row);
  const auto probs = soft_.probs_of(row);
  batch.soft_rows.insert(batch.soft_rows.end(), rows.begin(), rows.end());
  batch.soft_probs.insert(batch.soft_probs.end(), probs.begin(), probs.end());
}

/// @returns [n, E] the root of each position and the tokens after it. Where the text ends its last
/// token stands in: heads that would read further have no label there.
at::Tensor ShuffleBuffer::read_tokens(std::span<const int64_t> positions) const {
  std::vector<TokenId> tokens;
  for (const int64_t index : positions) {
    const Position& position = positions_[static_cast<size_t>(index)];
    for (int64_t i = 0; i < recipe_.num_tokens; ++i)
      tokens.push_back(tokens_[static_cast<size_t>(position.row + std::min(i, position.behind))]);
  }
  return at::tensor(tokens, at::kInt)
      .view({static_cast<int64_t>(positions.size()), recipe_.num_tokens});
}

Batch ShuffleBuffer::batch(std::span<const int64_t> positions) const {
  Batch batch;
  batch.num_heads = recipe_.num_heads;
  batch.soft_size = soft_.size;
  batch.objective = recipe_.objective;
  std::vector<int64_t> rows;
  for (const int64_t position : positions)
    rows.push_back(positions_[static_cast<size_t>(position)].row);
  for (int64_t head = 0; head < recipe_.num_heads; ++head)
    for (const int64_t position : positions)
      add_labels(head, positions_[static_cast<size_t>(position)], batch);
  const at::Tensor& embedding = recipe_.backbone.embedding;
  batch.hidden = hidden_.index_select(0, at::tensor(rows, at::kLong))
                     .to(embedding.device(), embedding.scalar_type());
  if (recipe_.whole_answers) {
    batch.answers = answers_;
    batch.rows = std::move(rows);
  }
  batch.embeddings = token_embeddings(recipe_.backbone, recipe_.embedding_gain,
                                      read_tokens(positions).to(embedding.device()));
  return batch;
}

}  // namespace medusa
