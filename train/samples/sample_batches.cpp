#include "train/samples/sample_batches.h"

#include <utility>

#include "base/interrupt.h"
#include "data/dataset/sample_order.h"

namespace medusa {

std::vector<SampleBatch> cut_batches(const DatasetReader& dataset, std::span<const int64_t> samples,
                                     int64_t batch_tokens) {
  std::vector<SampleBatch> out;
  int64_t tokens = batch_tokens;
  for (const int64_t sample : samples) {
    if (tokens >= batch_tokens) {
      out.emplace_back();
      tokens = 0;
    }
    out.back().samples.push_back(sample);
    out.back().positions += static_cast<int64_t>(dataset.answer(sample).size());
    tokens += static_cast<int64_t>(dataset.tokens(sample).size());
  }
  return out;
}

std::vector<SampleBatch> batches_of_run(const Random& random, const DatasetReader& dataset,
                                        const std::vector<int64_t>& samples, int64_t epochs,
                                        int64_t batch_tokens) {
  std::vector<SampleBatch> out;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    stop_if_interrupted();
    for (SampleBatch& batch :
         cut_batches(dataset, samples_of_epoch(random, dataset, samples, epoch), batch_tokens))
      out.push_back(std::move(batch));
  }
  return out;
}

BatchTexts texts_of(const DatasetReader& dataset, const std::vector<int64_t>& samples) {
  BatchTexts out;
  for (const int64_t sample : samples) {
    const auto all = dataset.tokens(sample);
    const auto begin = static_cast<int64_t>(out.tokens.size());
    out.tokens.insert(out.tokens.end(), all.begin(), all.end() - 1);
    out.lengths.push_back(std::ssize(all) - 1);
    for (int64_t i = dataset.answer_start(sample) - 1; i + 1 < std::ssize(all); ++i)
      out.answer_rows.push_back(begin + i);
  }
  return out;
}

}  // namespace medusa
