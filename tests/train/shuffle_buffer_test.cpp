#include "train/samples/shuffle_buffer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/train/tiny_run.h"
#include "train/train_plan.h"

namespace medusa {
namespace {

TEST(ShuffleBuffer, LabelsAreShiftedPerHeadAndTokensReadAreTheTrueOnes) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  std::vector<int32_t> rows(130);
  for (size_t token = 0; token < rows.size(); ++token)
    rows[token] = token % 10 == 0 ? -1 : static_cast<int32_t>(token + 1000);
  const std::vector<int64_t> samples{4, 2};
  const BatchRecipe recipe = tiny_recipe(run.backbone, 3, rows, /*num_tokens=*/3);
  const ShuffleBuffer pool(dataset, samples, offline_hidden(dataset), recipe);
  const Batch batch = pool.batch(all_positions(pool));
  ASSERT_EQ(batch.embeddings.size(1), 3);
  int64_t position = 0;
  for (const int64_t sample : samples) {
    const auto answer = dataset.answer(sample);
    const at::Tensor hidden = offline_hidden(dataset)(sample);
    ASSERT_EQ(hidden.size(0), static_cast<int64_t>(answer.size()));
    for (size_t i = 0; i + 1 < answer.size(); ++i, ++position) {
      EXPECT_TRUE(
          at::equal(batch.hidden[position], hidden[static_cast<int64_t>(i)].to(at::kFloat)));
      for (size_t read = 0; read < 3; ++read) {  // the true tokens from the root on
        if (i + read >= answer.size()) continue;
        EXPECT_TRUE(
            at::equal(batch.embeddings[position][static_cast<int64_t>(read)],
                      run.backbone.embedding[answer[i + read]] * embedding_gain(run.backbone)));
      }
      for (int64_t head = 0; head < 3; ++head) {
        const size_t place = i + 1 + static_cast<size_t>(head);
        int32_t expected = kNoLabel;
        if (place < answer.size())
          expected = answer[place] % 10 == 0 ? kLabelNotKept : answer[place] + 1000;
        EXPECT_EQ(batch.labels_of(head).hard[static_cast<size_t>(position)], expected);
      }
    }
  }
  EXPECT_EQ(batch.size(), position);
}

// The reference trainer padded with the end token and masked the padding, and with it the answers'
// own ends: its heads never learnt that a text ends.
TEST(ShuffleBuffer, TheEndTokenIsALabelLikeAnyOther) {
  const TinyRun run;
  constexpr TokenId kEnd = 2;
  Sample sample = tiny_sample(0);
  sample.tokens.back() = kEnd;
  DatasetInfo info;
  info.backbone = run.backbone.fingerprint;
  info.vocab_size = run.backbone.config.vocab_size;
  DatasetWriter(run.folder.path() / "ends", info, 1, 1).add(0, sample);
  const DatasetReader dataset(run.folder.path() / "ends");
  std::vector<int32_t> rows(130);
  std::iota(rows.begin(), rows.end(), 0);
  const BatchRecipe recipe = tiny_recipe(run.backbone, 3, rows);
  const HiddenSource states = [&](int64_t i) {
    return at::zeros({std::ssize(dataset.answer(i)), run.backbone.config.hidden_size},
                     at::kBFloat16);
  };
  const std::vector<int64_t> samples{0};
  const ShuffleBuffer pool(dataset, samples, states, recipe);
  const Batch batch = pool.batch(all_positions(pool));
  for (int64_t head = 0; head < 3; ++head) {
    const auto last = static_cast<size_t>(pool.size() - 1 - head);  // the end is k + 1 behind it
    EXPECT_EQ(batch.labels_of(head).hard[last], kEnd) << head;
  }
}

TEST(ShuffleBuffer, RecordedAndComputedStatesAreEqual) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  Llama llama(run.backbone);
  const HiddenSource offline = offline_hidden(dataset), online = online_hidden(dataset, llama);
  for (int64_t sample = 0; sample < 5; ++sample) {
    const at::Tensor recorded = offline(sample), computed = online(sample);
    const int64_t n = num_positions(dataset, sample);
    EXPECT_EQ(n + 1, recorded.size(0));
    EXPECT_TRUE(at::allclose(recorded.narrow(0, 0, n).to(at::kFloat),
                             computed.narrow(0, 0, n).to(at::kFloat), 1e-2, 1e-2));
  }
}

TEST(ShuffleBuffer, SoftLabelsAreTheBackbonesOwnAtThatPlace) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  std::vector<int32_t> rows(130);
  std::iota(rows.begin(), rows.end(), 0);
  BatchRecipe recipe = tiny_recipe(run.backbone, 3, rows);
  recipe.soft_output = run.backbone.lm_head;
  recipe.soft_size = 4;
  const std::vector<int64_t> samples{4, 2};
  const ShuffleBuffer pool(dataset, samples, offline_hidden(dataset), recipe);
  const int64_t in_first = num_positions(dataset, 4);
  const std::vector<int64_t> positions{in_first + 3, 0, in_first - 1};
  const Batch batch = pool.batch(positions);
  ASSERT_EQ(batch.soft_size, 4);
  const auto expect_soft = [&](size_t n, int64_t head, int64_t sample, int64_t place) {
    const at::Tensor hidden = offline_hidden(dataset)(sample)[place].to(at::kFloat);
    const auto [probs, top] = at::softmax(at::mv(run.backbone.lm_head, hidden), 0).topk(4);
    const Labels labels = batch.labels_of(head);
    for (int64_t j = 0; j < 4; ++j) {
      const size_t at = n * 4 + static_cast<size_t>(j);
      EXPECT_EQ(labels.soft_rows[at], top[j].item<int64_t>());
      EXPECT_NEAR(labels.soft_probs[at], (probs[j] / probs.sum()).item<double>(), 1e-5);
    }
  };
  for (int64_t head = 0; head < 3; ++head) {
    expect_soft(0, head, 2, 3 + 1 + head);
    expect_soft(1, head, 4, 0 + 1 + head);
  }
  expect_soft(2, 0, 4, in_first);  // the answer's last token; the other heads have no label there
  EXPECT_EQ(batch.labels_of(1).hard[2], kNoLabel);
  EXPECT_FALSE(batch.labels_of(1).has_loss(2));
}

TEST(ShuffleBuffer, PositionsCanBeTakenInAnyOrder) {
  const TinyRun run;
  const DatasetReader dataset(run.folder.path() / "dataset");
  std::vector<int32_t> rows(130);
  std::iota(rows.begin(), rows.end(), 0);
  const BatchRecipe recipe = tiny_recipe(run.backbone, 2, rows);
  const std::vector<int64_t> samples{1, 7, 3};
  const ShuffleBuffer pool(dataset, samples, offline_hidden(dataset), recipe);
  const Batch all = pool.batch(all_positions(pool));
  const auto order = shuffled_positions(Random(3), 5, pool.size());
  EXPECT_NE(order, all_positions(pool));
  const Batch mixed = pool.batch(order);
  for (size_t n = 0; n < order.size(); ++n) {
    const auto from = static_cast<size_t>(order[n]);
    const auto at = static_cast<int64_t>(n);
    EXPECT_TRUE(at::equal(mixed.hidden[at], all.hidden[order[n]]));
    EXPECT_TRUE(at::equal(mixed.embeddings[at], all.embeddings[order[n]]));
    for (int64_t head = 0; head < 2; ++head)
      EXPECT_EQ(mixed.labels_of(head).hard[n], all.labels_of(head).hard[from]);
  }
}

}  // namespace
}  // namespace medusa
