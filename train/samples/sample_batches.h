// Whole samples that make one batch, for training that runs texts through layers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/token.h"
#include "data/dataset/dataset_reader.h"

namespace medusa {

struct SampleBatch {
  std::vector<int64_t> samples;
  int64_t positions = 0;  // answer tokens: places that have a label
};

/// One epoch's samples in their order, cut where a batch has about so many tokens.
std::vector<SampleBatch> cut_batches(const DatasetReader& dataset, std::span<const int64_t> samples,
                                     int64_t batch_tokens);

/// The batches of all epochs of a run, one after the other.
std::vector<SampleBatch> batches_of_run(const Random& random, const DatasetReader& dataset,
                                        const std::vector<int64_t>& samples, int64_t epochs,
                                        int64_t batch_tokens);

/// A batch's texts one after the other, each without its last token, behind which nothing is
/// drafted.
struct BatchTexts {
  std::vector<TokenId> tokens;
  std::vector<int64_t> lengths;      // of each text
  std::vector<int64_t> answer_rows;  // [P] into tokens: before each answer token, sample by sample
};

BatchTexts texts_of(const DatasetReader& dataset, const std::vector<int64_t>& samples);

}  // namespace medusa
