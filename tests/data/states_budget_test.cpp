// States recorded up to a budget, and in 8 bits: writer, shard and reader together.
#include <gtest/gtest.h>

#include <numeric>

#include "data/dataset/dataset_merge.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/dataset_samples.h"

namespace medusa {
namespace {

constexpr int64_t kBudgetSamples = 23, kBudgetShard = 5, kStateWidth = 3;

DatasetInfo budget_info(int64_t budget, StateFormat format = StateFormat::Bfloat16) {
  DatasetInfo info = fixtures::small_info(kStateWidth);
  info.states_budget = budget;
  info.states = format;
  return info;
}

/// Writes them in this order; those that are there already are left out.
void write_in_order(const std::filesystem::path& folder, const DatasetInfo& info,
                    const std::vector<int64_t>& order) {
  DatasetWriter writer(folder, info, kBudgetSamples, kBudgetShard);
  for (const int64_t i : order)
    if (!writer.has(i)) writer.add(i, fixtures::small_sample(i, kStateWidth));
}

std::vector<int64_t> first_to_last() {
  std::vector<int64_t> order(kBudgetSamples);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

int64_t budget_answer_length(int64_t i) {
  return fixtures::small_sample(i, kStateWidth).answer_length();
}

TEST(StatesBudget, RecordsAnswerByAnswerUntilOneDoesNotFit) {
  const fixtures::TempFolder folder;
  int64_t rows = 0;
  for (int64_t i = 0; i < 12; ++i) rows += budget_answer_length(i);
  // Room for 12 answers, and one byte less than for 13.
  const int64_t budget = (rows + budget_answer_length(12)) * 2 * kStateWidth - 1;
  write_in_order(folder / "d", budget_info(budget), first_to_last());
  const DatasetReader dataset(folder / "d");
  EXPECT_EQ(dataset.num_hidden(), 12);
  EXPECT_EQ(dataset.num_hidden_tokens(), rows);
  EXPECT_FALSE(dataset.has_hidden());
  EXPECT_EQ(dataset.info().states_budget, budget);
  for (int64_t i = 0; i < kBudgetSamples; ++i) {
    ASSERT_EQ(dataset.has_hidden(i), i < 12) << i;
    if (i >= 12) continue;  // also short ones that would fit: what is recorded is one piece
    const Sample expected = fixtures::small_sample(i, kStateWidth);
    std::vector<uint16_t> hidden(expected.hidden.size());
    dataset.read_hidden(i, hidden);
    EXPECT_EQ(hidden, expected.hidden);
  }
  // The text is the same with and without.
  fixtures::write_small_dataset(folder / "all", kBudgetSamples, kBudgetShard);
  EXPECT_EQ(DatasetReader(folder / "all").fingerprint(), dataset.fingerprint());
}

TEST(StatesBudget, IsTheSameWhateverIsFinishedFirstAndAfterAKill) {
  const fixtures::TempFolder folder;
  for (const int64_t budget : {7L, 100L, 200L, 250L, 100000L}) {
    SCOPED_TRACE(budget);
    const std::string name = std::to_string(budget);
    const DatasetInfo info = budget_info(budget, StateFormat::Int8);
    write_in_order(folder / ("a" + name), info, first_to_last());
    std::vector<int64_t> order = first_to_last();
    std::reverse(order.begin(), order.end());
    write_in_order(folder / ("b" + name), info, order);
    EXPECT_EQ(fixtures::files_of(folder / ("a" + name)), fixtures::files_of(folder / ("b" + name)));
    {  // ends after the second shard; what is not finalized is lost
      DatasetWriter writer(folder / ("c" + name), info, kBudgetSamples, kBudgetShard);
      for (const int64_t i : {0, 1, 2, 3, 4, 9, 8, 7, 6, 5, 11})
        writer.add(i, fixtures::small_sample(i, kStateWidth));
    }
    EXPECT_EQ(fixtures::files_of(folder / ("c" + name)).size(), 2U);
    write_in_order(folder / ("c" + name), info, first_to_last());
    EXPECT_EQ(fixtures::files_of(folder / ("a" + name)), fixtures::files_of(folder / ("c" + name)));
  }
  // And joined from parts, as any dataset.
  EXPECT_EQ(merge_datasets({folder / "a200"}, folder / "merged"), 5);
  EXPECT_EQ(fixtures::files_of(folder / "merged"), fixtures::files_of(folder / "a200"));
}

TEST(StatesBudget, Int8StatesComeBackRounded) {
  const fixtures::TempFolder folder;
  DatasetWriter writer(folder / "d", budget_info(0, StateFormat::Int8), 1, 1);
  Sample sample = fixtures::small_sample(3, kStateWidth);
  sample.hidden.resize(static_cast<size_t>(sample.answer_length() * kStateWidth));
  for (size_t i = 0; i < sample.hidden.size(); ++i)
    sample.hidden[i] = static_cast<uint16_t>(0x3F80 + 3 * i);  // from 1 upwards
  const Int8Rows rounded = round_rows(sample.hidden, kStateWidth);
  std::vector<uint16_t> expected(sample.hidden.size()), found(sample.hidden.size());
  unround_rows(rounded.levels, rounded.scales, expected);
  writer.add(0, sample);
  const DatasetReader dataset(folder / "d");
  EXPECT_TRUE(dataset.has_hidden());
  dataset.read_hidden(0, found);
  EXPECT_EQ(found, expected);
  EXPECT_NE(found, sample.hidden);
}

TEST(StatesBudget, FilesOfTheFirstVersionStayTheirBytes) {
  EXPECT_EQ(format_version(fixtures::small_info()), 1);
  EXPECT_EQ(format_version(budget_info(0, StateFormat::Int8)), 2);
  EXPECT_EQ(format_version(budget_info(5)), 2);
}

TEST(StatesBudget, RefusesToContinueWithAnother) {
  const fixtures::TempFolder folder;
  write_in_order(folder / "d", budget_info(100), {0, 1, 2, 3, 4});
  EXPECT_EQ(
      fixtures::error_text(folder,
                           [&] {
                             write_in_order(folder / "d", budget_info(101), {5, 6});
                           }),
      "<>/d/shard-00000.h5: made with a budget for states of 100, this run has a budget for states "
      "of 101; choose another output folder or remove this one");
  EXPECT_EQ(
      fixtures::error_text(
          folder, [&] { write_in_order(folder / "d", budget_info(100, StateFormat::Int8), {5}); }),
      "<>/d/shard-00000.h5: made with states in bfloat16, this run has states in int8; "
      "choose another output folder or remove this one");
}

TEST(StatesBudget, AnAnswerWithSomeOfItsStatesIsRefused) {
  const fixtures::TempFolder folder;
  ShardSamples samples;
  samples.append(fixtures::small_sample(2, kStateWidth));
  samples.append(fixtures::small_sample(3, kStateWidth));
  samples.hidden.resize(samples.hidden.size() - kStateWidth);
  --samples.hidden_offsets.back();
  const ShardHeader header{budget_info(1000), 0, 2, 2, true};
  fixtures::overwrite(folder / "shard.h5", encode_shard(header, samples));
  EXPECT_EQ(fixtures::error_text(folder, [&] { ShardFile(folder / "shard.h5"); }),
            "<>/shard.h5: inconsistent, sample 1 has 4 answer tokens and 3 hidden rows; remove it "
            "and run the command that wrote this dataset again with the same options: `medusa "
            "distill` writes only what is missing; for `medusa dataset` remove the whole folder");
}

}  // namespace
}  // namespace medusa
