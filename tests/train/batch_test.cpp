#include "train/batch.h"

#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace medusa {
namespace {

TEST(Batch, LabelsAreShiftedPerHead) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  std::vector<int32_t> rows(130);
  for (size_t token = 0; token < rows.size(); ++token)
    rows[token] = token % 10 == 0 ? -1 : static_cast<int32_t>(token + 1000);
  const std::vector<int64_t> samples{4, 2};
  const Batch batch = make_batch(dataset, samples, cached_hidden(dataset), run.backbone, 3, rows);
  int64_t position = 0;
  for (const int64_t sample : samples) {
    const auto answer = dataset.answer(sample);
    const at::Tensor hidden = cached_hidden(dataset)(sample);
    ASSERT_EQ(hidden.size(0), static_cast<int64_t>(answer.size()));
    for (size_t i = 0; i + 1 < answer.size(); ++i, ++position) {
      EXPECT_TRUE(
          at::equal(batch.hidden[position], hidden[static_cast<int64_t>(i)].to(at::kFloat)));
      EXPECT_TRUE(at::equal(batch.embeddings[position],
                            run.backbone.embedding[answer[i]] * embedding_gain(run.backbone)));
      for (int64_t head = 0; head < 3; ++head) {
        const size_t place = i + 1 + static_cast<size_t>(head);
        int32_t expected = kNoLabel;
        if (place < answer.size())
          expected = answer[place] % 10 == 0 ? kLabelNotKept : answer[place] + 1000;
        EXPECT_EQ(batch.labels_of(head)[static_cast<size_t>(position)], expected);
      }
    }
  }
  EXPECT_EQ(batch.size(), position);
}

TEST(Batch, RecordedAndComputedStatesAreEqual) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  Llama llama(run.backbone);
  const HiddenSource cached = cached_hidden(dataset), live = live_hidden(dataset, llama);
  for (int64_t sample = 0; sample < 5; ++sample) {
    const at::Tensor recorded = cached(sample), computed = live(sample);
    const int64_t n = num_positions(dataset, sample);
    EXPECT_EQ(n + 1, recorded.size(0));
    EXPECT_TRUE(at::allclose(recorded.narrow(0, 0, n).to(at::kFloat),
                             computed.narrow(0, 0, n).to(at::kFloat), 1e-2, 1e-2));
  }
}

TEST(Batch, PlannedBatchesHoldEverySampleOnceAndEndWhenFull) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  std::vector<int64_t> samples{5, 3, 8, 1, 9, 0, 2};
  std::vector<int64_t> joined;
  const auto batches = plan_batches(dataset, samples, 50);
  for (const auto& batch : batches) {
    int64_t positions = 0, before_last = 0;
    for (const int64_t sample : batch) {
      before_last = positions;
      positions += num_positions(dataset, sample);
      joined.push_back(sample);
    }
    EXPECT_LT(before_last, 50);
    if (&batch != &batches.back()) {
      EXPECT_GE(positions, 50);
    }
  }
  EXPECT_EQ(joined, samples);
}

}  // namespace
}  // namespace medusa
