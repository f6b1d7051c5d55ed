#include "data/dataset/dataset_merge.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"
#include "tests/data/dataset_samples.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCount = 23, kShardSize = 3;  // 8 shards, the last one shorter

/// Samples in another order than their numbers'; every tenth prompt was skipped.
void write_part(const fs::path& folder, const DatasetPart& part,
                const DatasetInfo& info = fixtures::small_info()) {
  DatasetWriter writer(folder, info, kCount, kShardSize, part);
  int64_t own = 0;
  for (int64_t i = kCount - 1; i >= 0; --i) {
    if (writer.has(i)) continue;
    ++own;
    writer.add(i, i % 10 == 4 ? Sample() : fixtures::small_sample(i));
  }
  EXPECT_TRUE(writer.complete());
  EXPECT_LE(own, writer.num_own_samples());
}

class DatasetMerge : public testing::Test {
 protected:
  fs::path place(const std::string& name) const { return folder_.path() / name; }
  std::string merge_error(const std::vector<std::string>& names) const {
    std::vector<fs::path> parts;
    for (const std::string& name : names) parts.push_back(place(name));
    return fixtures::error_text(folder_, [&] { merge_datasets(parts, place("all")); });
  }
  /// Parts 0, 1 and 2 of 3.
  void write_three() const {
    for (int64_t i = 0; i < 3; ++i) write_part(place(std::to_string(i)), {i, 3});
  }
  fixtures::TempFolder folder_;
};

TEST_F(DatasetMerge, GivesTheBytesOfOneProcess) {
  write_part(place("whole"), {});
  const auto whole = fixtures::files_of(place("whole"));
  ASSERT_EQ(whole.size(), 8U);
  for (const int64_t count : {1, 2, 3, 8, 11}) {  // 11: some parts have no shard
    SCOPED_TRACE(count);
    const fs::path target = place("of" + std::to_string(count));
    std::vector<fs::path> parts;
    for (int64_t i = count - 1; i >= 0; --i) {
      parts.push_back(place(std::to_string(count) + "/" + std::to_string(i)));
      write_part(parts.back(), {i, count});
    }
    EXPECT_EQ(merge_datasets(parts, target), 8);
    EXPECT_EQ(fixtures::files_of(target), whole);
  }
}

TEST_F(DatasetMerge, APartThatWasKilledGoesOnWhereItWas) {
  write_part(place("part"), {1, 3});
  const auto unbroken = fixtures::files_of(place("part"));
  ASSERT_EQ(unbroken.size(), 3U);
  fs::remove(place("part") / "shard-00004.h5");
  write_part(place("part"), {1, 3});
  EXPECT_EQ(fixtures::files_of(place("part")), unbroken);
  EXPECT_EQ(fixtures::error_text(folder_,
                                 [&] {
                                   write_part(place("part"), {2, 3});
                                 }),
            "<>/part/shard-00001.h5: is not a shard of part 2/3; choose another output folder or "
            "remove this one");
}

TEST_F(DatasetMerge, RefusesPartsThatDoNotMakeOneDataset) {
  write_three();
  EXPECT_EQ(merge_error({"0", "1"}),
            "<>/all: shard-00002.h5 is in none of the parts, expected all up to the last one; name "
            "the part that it belongs to, or let medusa distill --shard finish it");
  EXPECT_EQ(merge_error({"0", "nowhere"}),
            "<>/nowhere: no such folder, expected a part of a dataset; check the path, or make it "
            "with medusa distill --shard");
  fs::copy(place("1"), place("again"));
  EXPECT_EQ(merge_error({"0", "1", "2", "again"}),
            "<>/again/shard-00001.h5: <>/1 holds this shard as well, expected each in one part; "
            "leave one of them out");
  fs::create_directory(place("empty"));
  EXPECT_EQ(merge_error({"empty"}),
            "<>/all: the parts hold no shard, expected some; run medusa distill --shard first");
  DatasetInfo info = fixtures::small_info();
  info.seed = 5;
  write_part(place("other"), {1, 3}, info);
  EXPECT_EQ(merge_error({"0", "other", "2"}),
            "<>/other/shard-00001.h5: made with seed 5, <>/0/shard-00000.h5 with seed "
            "18446744073709551615, expected parts of one run; distil it again with the other "
            "parts' settings");
  EXPECT_FALSE(fs::exists(place("all")));
  EXPECT_FALSE(fs::exists(place("all.partial")));
}

TEST_F(DatasetMerge, RefusesAPartWithoutItsLastShardAndADamagedOne) {
  write_three();
  fs::remove(place("1") / "shard-00007.h5");
  EXPECT_EQ(merge_error({"0", "1", "2"}),
            "<>/all: shard-00007.h5 is in none of the parts, expected all up to the last one; name "
            "the part that it belongs to, or let medusa distill --shard finish it");
  std::string bytes = read_file(place("2") / "shard-00002.h5");
  bytes[bytes.size() / 2] ^= 1;
  fixtures::overwrite(place("2") / "shard-00002.h5", bytes);
  EXPECT_NE(merge_error({"0", "1", "2"}).find("<>/2/shard-00002.h5: "), std::string::npos);
}

TEST_F(DatasetMerge, NeverWritesOverADataset) {
  write_three();
  fs::create_directory(place("all"));
  EXPECT_EQ(merge_error({"0", "1", "2"}),
            "<>/all: there is a dataset already, expected a new folder; remove it or set another "
            "run");
}

}  // namespace
}  // namespace medusa
