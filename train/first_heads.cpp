#include "train/first_heads.h"

#include <vector>

#include "data/dataset/dataset_mix.h"
#include "data/dataset/token_counts.h"

namespace medusa {

MedusaHeads untrained_heads(const TrainConfig& config, const HeadsConfig& heads,
                            const DatasetReader& dataset, const Weights& backbone) {
  std::vector<TokenId> kept;
  if (is_truncated(heads.output)) {
    const Random random(config.seed);
    const SampleSplit split = split_dataset(random, dataset, config.validation_fraction);
    std::vector<int64_t> visits;
    for (int64_t epoch = 0; epoch < config.optimizer.epochs; ++epoch)
      for (const int64_t sample : samples_of_epoch(random, dataset, split.train, epoch))
        visits.push_back(sample);
    kept = count_answer_tokens(dataset, visits).most_frequent(heads.output_size);
  }
  return make_heads(heads, backbone, std::move(kept), config.seed);
}

}  // namespace medusa
