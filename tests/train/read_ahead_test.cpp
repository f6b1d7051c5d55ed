#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/train/tiny_run.h"
#include "train/samples/hidden_source.h"

namespace medusa {
namespace {

/// Fails where a sample without recorded states is asked for.
const HiddenSource kNone = [](int64_t sample) -> at::Tensor {
  ADD_FAILURE() << sample;
  return {};
};

TEST(ReadAhead, GivesWhatIsRecordedInTheOrderAskedFor) {
  const TinyRun run;
  const DatasetReader dataset = run.open_data();
  const HiddenSource recorded = offline_hidden(dataset);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 100; ++i) order.push_back(i * 7 % 48);
  for (const int64_t most_rows : {0, 30, 100000}) {
    const HiddenSource ahead = read_ahead(dataset, order, kNone, most_rows);
    for (const int64_t sample : order)
      EXPECT_TRUE(at::equal(ahead(sample), recorded(sample))) << sample;
  }
}

TEST(ReadAhead, AsksTheOtherSourceForSamplesWithoutRecordedStates) {
  const TinyRun run;
  const int64_t budget = 20 * 25 * run.backbone.config.hidden_size * 2;  // of the first ones
  write_tiny_dataset(run.folder.path() / "some", run.backbone, 48, true, 0, budget);
  const DatasetReader dataset(run.folder.path() / "some");
  ASSERT_TRUE(dataset.has_hidden(0));
  ASSERT_FALSE(dataset.has_hidden(47));
  std::vector<int64_t> asked;
  const HiddenSource other = [&](int64_t sample) {
    asked.push_back(sample);
    return at::zeros({1, 1}, at::kBFloat16);
  };
  const HiddenSource ahead = read_ahead(dataset, {3, 5}, other, 1000);
  EXPECT_TRUE(at::equal(ahead(3), offline_hidden(dataset)(3)));
  EXPECT_EQ(ahead(47).numel(), 1);
  EXPECT_TRUE(at::equal(ahead(5), offline_hidden(dataset)(5)));
  EXPECT_EQ(asked, std::vector<int64_t>{47});
}

TEST(ReadAhead, AskingForMoreThanTheOrderIsABug) {
  const TinyRun run;
  const DatasetReader dataset = run.open_data();
  const HiddenSource ahead = read_ahead(dataset, {3}, kNone, 1000);
  EXPECT_TRUE(ahead(3).defined());
  EXPECT_THROW(ahead(3), std::logic_error);
  const HiddenSource other = read_ahead(dataset, {3}, kNone, 1000);
  EXPECT_THROW(other(4), std::logic_error);
}

TEST(ReadAhead, ASourceThatIsGivenUpEndsItsThread) {
  const TinyRun run;
  const DatasetReader dataset = run.open_data();
  for (int i = 0; i < 50; ++i) {
    const HiddenSource ahead = read_ahead(dataset, {1, 2, 3}, kNone, i % 2 == 0 ? 0 : 1000);
    if (i % 3 == 0) ahead(1);
  }
}

TEST(ReadAhead, WhatFailsIsThrownWhereItIsAskedFor) {
  const TinyRun run;
  const int64_t of_first = 20 * run.backbone.config.hidden_size * 2;
  write_tiny_dataset(run.folder.path() / "one", run.backbone, 48, true, 0, of_first);
  const DatasetReader dataset(run.folder.path() / "one");
  ASSERT_TRUE(dataset.has_hidden(0));
  ASSERT_FALSE(dataset.has_hidden(1));
  const HiddenSource ahead = read_ahead(dataset, {0, 1, 0}, kNone, 1000);
  EXPECT_TRUE(ahead(0).defined());
  EXPECT_ANY_THROW(ahead(0)) << "its thread stopped at a sample without states";
}

}  // namespace
}  // namespace medusa
