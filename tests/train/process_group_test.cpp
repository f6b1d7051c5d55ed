#include "train/processes/process_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/train/tiny_run.h"
#include "train/processes/data_parallel.h"

namespace medusa {
namespace {

TEST(ProcessGroup, OneProcessHasNone) {
  EXPECT_EQ(join_processes(ProcessPlace(), at::kCPU, 300), nullptr);
}

TEST(ShardedSamples, DealsOutEveryPositionOnce) {
  const TinyRun run;
  const DatasetReader dataset = run.open_data();
  std::vector<int64_t> samples{9, 3, 4, 30, 31, 7, 12};
  std::vector<int64_t> pool(200), taken(200), sizes;
  std::iota(pool.begin(), pool.end(), 0);
  int64_t size = 0;
  for (const int64_t sample : samples) size += num_positions(dataset, sample);
  pool.resize(static_cast<size_t>(size));
  for (int64_t rank = 0; rank < 3; ++rank) {
    const ShardedSamples share = sharded_samples(dataset, samples, rank, 3);
    ASSERT_EQ(std::ssize(share.positions), size);
    const auto own = share.own_of(pool);
    int64_t expected = 0;  // positions of the own samples, from the first to the last
    for (const int64_t sample : share.samples) expected += num_positions(dataset, sample);
    ASSERT_EQ(std::ssize(own), expected);
    for (int64_t i = 0; i < expected; ++i) EXPECT_EQ(own[static_cast<size_t>(i)], i);
    for (size_t i = 0; i < pool.size(); ++i) taken[i] += share.positions[i] >= 0 ? 1 : 0;
    sizes.push_back(expected);
  }
  for (int64_t i = 0; i < size; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], 1) << i;
  EXPECT_LT(*std::max_element(sizes.begin(), sizes.end()), 2 * size / 3);
  EXPECT_EQ(sharded_samples(dataset, samples, 0, 1).samples, samples);
}

}  // namespace

}  // namespace medusa
