// A tiny dataset with the states of a tiny backbone, and everything a training run needs.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "backbone/llama.h"
#include "base/random.h"
#include "data/dataset/dataset_reader.h"
#include "data/dataset/dataset_writer.h"
#include "tests/backbone/tiny_model.h"
#include "tests/base/temp_folder.h"
#include "train/samples/hidden_source.h"
#include "train/samples/shuffle_buffer.h"
#include "train/trainer.h"

namespace medusa {

/// Text that can be learnt: the next token follows from the last one, but for one in five.
inline Sample tiny_sample(int64_t i) {
  const Random random = Random(41).child(static_cast<uint64_t>(i));
  Sample sample;
  sample.prompt_id = std::to_string(i);
  sample.answer_start = 1 + i % 5;
  const int64_t length = sample.answer_start + 20 + i % 13;
  TokenId token = static_cast<TokenId>(random.bits(RandomUse::Init, -1) % 130);
  for (int64_t t = 0; t < length; ++t) {
    sample.tokens.push_back(token);
    const uint64_t jump = random.bits(RandomUse::Init, t);
    token = jump % 5 == 0 ? static_cast<TokenId>(jump / 5 % 130) : (3 * token + 7) % 130;
  }
  return sample;
}

/// Writes a dataset in which states are recorded as a pass over each sample gives them.
/// @param first  number of its first sample: datasets without a common one are different text.
/// @param budget bytes of states; 0: all.
inline void write_tiny_dataset(const std::filesystem::path& folder, const Weights& backbone,
                               int64_t num_samples, bool with_hidden, int64_t first = 0,
                               int64_t budget = 0) {
  const int64_t hidden_size = backbone.config.hidden_size;
  const DatasetInfo info{backbone.fingerprint,
                         "sha256:70",
                         "sha256:99",
                         "",
                         1,
                         backbone.config.vocab_size,
                         with_hidden ? hidden_size : 0,
                         StateFormat::Bfloat16,
                         budget};
  DatasetWriter writer(folder, info, num_samples, 16);
  Llama llama(backbone);
  KvCache cache = llama.make_cache(1, 64);
  for (int64_t i = 0; i < num_samples; ++i) {
    Sample sample = tiny_sample(first + i);
    if (with_hidden) {
      const int32_t slot = cache.open();
      const Segment all{slot, sample.tokens, {}};
      const at::Tensor hidden = llama.forward({&all, 1}, cache)
                                    .slice(0, sample.answer_start - 1, -1)
                                    .to(at::kBFloat16)
                                    .contiguous();
      cache.close(slot);
      const auto* bits = static_cast<const uint16_t*>(hidden.const_data_ptr());
      sample.hidden.assign(bits, bits + hidden.numel());
    }
    writer.add(i, std::move(sample));
  }
}

/// Hard labels.
inline BatchRecipe tiny_recipe(const Weights& backbone, int64_t num_heads,
                               std::span<const int32_t> label_row, int64_t num_tokens = 1) {
  return {.backbone = backbone,
          .num_heads = num_heads,
          .num_tokens = num_tokens,
          .label_row = label_row,
          .embedding_gain = embedding_gain(backbone),
          .soft_output = {},
          .chunk = 16};
}

inline std::vector<int64_t> all_positions(const ShuffleBuffer& pool) {
  std::vector<int64_t> positions(static_cast<size_t>(pool.size()));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

/// Untrained heads, which draft 100 of the 130 tokens if they are truncated.
inline MedusaHeads tiny_first_heads(const HeadsConfig& heads, const Weights& backbone) {
  std::vector<TokenId> kept;
  if (is_truncated(heads.output))
    for (TokenId token = 0; token < 100; ++token) kept.push_back(token);
  return make_heads(heads, backbone, kept, 5);
}

/// A run in a folder of its own.
struct TinyRun {
  /// @param device  that trains. The dataset's states are the CPU's, so that it is always the same.
  explicit TinyRun(bool with_hidden = true, at::ScalarType dtype = at::kFloat,
                   at::Device device = at::kCPU)
      : backbone(on_device(tiny_weights(1, tiny_config(), dtype), device)) {
    write_tiny_dataset(folder.path() / "dataset", tiny_weights(1, tiny_config(), dtype), 48,
                       with_hidden);
    config.optimizer.epochs = 2;
    config.batch_positions = 200;
    config.shuffle_positions = 500;
    config.optimizer.learning_rate = 5e-3;
    config.optimizer.warmup_steps = 3;
    config.chunk_positions = 64;
    config.validation_fraction = 0.15;
    config.reports.report_every = 1;
    heads.num_heads = 3;
    heads.output_size = 100;
  }

  /// Trains in folder/<name>.
  TrainResult train(const std::string& name, Llama* llama = nullptr) const {
    const DatasetReader dataset = open_data();
    return train_heads(config, heads,
                       {dataset, backbone, llama, folder.path() / name / "heads",
                        folder.path() / name / "train", "settings of the run\n"});
  }

  /// The run's dataset, and those of `more`.
  DatasetReader open_data() const {
    std::vector<WeightedFolder> folders{{folder.path() / "dataset", 1}};
    folders.insert(folders.end(), more.begin(), more.end());
    return DatasetReader(folders);
  }

  /// Adds a dataset of other text to those that are trained on.
  void add_dataset(const std::string& name, int64_t num_samples, double weight) {
    write_tiny_dataset(folder.path() / name, backbone, num_samples, /*with_hidden=*/true,
                       1000 * std::ssize(more) + 1000);
    more.push_back({folder.path() / name, weight});
  }

  std::filesystem::path metrics(const std::string& name) const {
    return folder.path() / name / "train/metrics.jsonl";
  }

  fixtures::TempFolder folder;
  Weights backbone;
  TrainConfig config;
  HeadsConfig heads;
  std::vector<WeightedFolder> more;
};

}  // namespace medusa
