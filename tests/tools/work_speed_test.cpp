#include "tests/speed/work_speed.h"

#include <gtest/gtest.h>

#include "data/dataset/dataset_reader.h"
#include "heads/heads_checkpoint.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

// So that the program is known to work before a GPU is at hand.
TEST(WorkSpeed, ATinyModelDistilsAndItsHeadsTrain) {
  const fixtures::TempFolder folder;
  const WorkSpeeds speeds = measure_work_speed(speed_shape("tiny"), at::kBFloat16, at::kCPU,
                                               /*sequences=*/16, /*new_tokens=*/40, folder.path(),
                                               /*seed=*/1);
  EXPECT_EQ(speeds.shape, "tiny");
  EXPECT_GT(speeds.distil.per_second, 0);
  EXPECT_GT(speeds.train.per_second, 0);
  const DatasetReader dataset(folder / "dataset");
  ASSERT_EQ(dataset.size(), 16);
  EXPECT_EQ(dataset.answer(15).size(), 40U);
  EXPECT_TRUE(dataset.has_hidden());
  EXPECT_TRUE(std::filesystem::exists(folder / "heads"));
}

TEST(WorkSpeed, TheTableNamesRateAndMemory) {
  const WorkSpeeds speeds{"some",
                          "cuda:0",
                          "BFloat16",
                          128,
                          64,
                          256,
                          {12345.6, {2'000'000'000, 15'000'000'000}},
                          {54321, {2'100'000'000, 3'500'000'000}}};
  EXPECT_EQ(work_speed_table(speeds),
            "some, cuda:0, BFloat16\n"
            "distil: 128 sequences of 64 tokens, 12346 tokens/s; peak memory 2.00 GB, 15.00 GB on "
            "the GPU\n"
            "train: 4 heads, 256 positions a step, 54321 positions/s; peak memory 2.10 GB, 3.50 GB "
            "on the GPU\n");
}

}  // namespace
}  // namespace medusa
