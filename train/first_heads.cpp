#include "train/first_heads.h"

#include "data/sample_order.h"
#include "data/token_counts.h"

namespace medusa {

MedusaHeads untrained_heads(const TrainConfig& config, const HeadsConfig& heads,
                            const DatasetReader& dataset, const Weights& backbone) {
  std::vector<TokenId> kept;
  if (is_truncated(heads.output)) {
    const Random random(config.seed);
    const TokenCounts counts = count_answer_tokens(dataset, [&](int64_t sample) {
      return !in_validation(random, sample, config.validation_fraction);
    });
    kept = counts.most_frequent(heads.output_size);
  }
  return make_heads(heads, backbone, std::move(kept), config.seed);
}

}  // namespace medusa
