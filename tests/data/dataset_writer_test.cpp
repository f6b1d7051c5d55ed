#include "data/dataset/dataset_writer.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/dataset_samples.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::files_of;
using fixtures::overwrite;
using fixtures::small_info;
using fixtures::small_sample;
using fixtures::TempFolder;
using fixtures::write_small_dataset;
namespace fs = std::filesystem;

void add(DatasetWriter& writer, std::initializer_list<int64_t> samples) {
  for (const int64_t i : samples) writer.add(i, small_sample(i));
}

TEST(DatasetWriter, FinalizesAShardOnceItAndAllBeforeItAreComplete) {
  const TempFolder folder;
  DatasetWriter writer(folder.path(), small_info(), 5, 2);
  add(writer, {4, 3, 2, 0});  // shards 1 and 2 are complete, but shard 0 is not
  EXPECT_TRUE(files_of(folder.path()).empty());
  EXPECT_FALSE(writer.has(2));
  add(writer, {1});
  EXPECT_EQ(files_of(folder.path()).size(), 3u);
  EXPECT_TRUE(writer.complete());
  EXPECT_EQ(writer.num_stored(), 5);
}

TEST(DatasetWriter, TheOrderOfCompletionDoesNotMatter) {
  const TempFolder in_order, mixed;
  write_small_dataset(in_order.path(), 7, 3);
  DatasetWriter writer(mixed.path(), small_info(), 7, 3);
  add(writer, {6, 1, 3, 0, 5, 2, 4});
  EXPECT_EQ(files_of(mixed.path()), files_of(in_order.path()));
}

TEST(DatasetWriter, ASampleWithoutAnswerCountsButIsNotStored) {
  const TempFolder folder;
  DatasetWriter writer(folder.path(), small_info(), 4, 2);
  writer.add(0, {});
  writer.add(1, {});  // a shard without any sample
  writer.add(2, {});
  add(writer, {3});
  const DatasetReader reader(folder.path());
  EXPECT_EQ(reader.size(), 1);
  EXPECT_EQ(reader.num_prompts(), 4);
  EXPECT_EQ(reader.prompt_id(0), small_sample(3).prompt_id);
}

TEST(DatasetWriter, ContinuesWithTheShardsThatAreMissing) {
  const TempFolder unbroken, continued;
  write_small_dataset(unbroken.path(), 8, 2);
  write_small_dataset(continued.path(), 8, 2);
  fs::remove(continued / "shard-00001.h5");
  fs::remove(continued / "shard-00003.h5");
  overwrite(continued / "shard-00003.h5.part-4711", "left by a killed run");
  {
    DatasetWriter writer(continued.path(), small_info(), 8, 2);
    EXPECT_FALSE(fs::exists(continued / "shard-00003.h5.part-4711"));
    std::vector<int64_t> missing;
    for (int64_t i = 0; i < 8; ++i)
      if (!writer.has(i)) missing.push_back(i);
    EXPECT_EQ(missing, (std::vector<int64_t>{2, 3, 6, 7}));
    for (const int64_t i : missing) writer.add(i, small_sample(i));
    EXPECT_TRUE(writer.complete());
    EXPECT_EQ(writer.num_stored(), 8);
  }
  EXPECT_EQ(files_of(continued.path()), files_of(unbroken.path()));
}

// A child process is killed with signal 9 after some shards, in the middle of its work; the run is
// repeated until it gets through.
TEST(DatasetWriter, AKilledAndRepeatedRunEndsInTheSameFiles) {
  constexpr int64_t kSamples = 400, kShard = 5;
  const TempFolder unbroken, killed;
  write_small_dataset(unbroken.path(), kSamples, kShard);
  for (const char* wait_for : {"shard-00001.h5", "shard-00020.h5", "shard-00050.h5"}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      write_small_dataset(killed.path(), kSamples, kShard);
      ::_exit(0);
    }
    while (!fs::exists(killed / wait_for) && ::waitpid(child, nullptr, WNOHANG) == 0) ::usleep(100);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_TRUE(fs::exists(killed / wait_for));
  }
  write_small_dataset(killed.path(), kSamples, kShard);
  EXPECT_EQ(files_of(killed.path()), files_of(unbroken.path()));
}

TEST(DatasetWriter, EndsWithTheShardThatReachesTheLimitWhateverIsFinishedFirst) {
  const TempFolder in_order, mixed;
  int64_t tokens = 0;
  for (int64_t i = 0; i < 6; ++i) tokens += small_sample(i).answer_length();
  DatasetWriter first(in_order.path(), small_info(), 20, 3, tokens - 1);
  for (int64_t i = 0; !first.complete(); ++i) first.add(i, small_sample(i));
  EXPECT_EQ(files_of(in_order.path()).size(), 2u);
  EXPECT_EQ(first.num_answer_tokens(), tokens);
  EXPECT_TRUE(first.has(19));

  DatasetWriter second(mixed.path(), small_info(), 20, 3, tokens - 1);
  add(second, {8, 7, 6, 12, 4, 5, 3, 2, 1, 0});
  EXPECT_EQ(files_of(mixed.path()), files_of(in_order.path()));
  EXPECT_TRUE(DatasetReader(mixed.path()).complete());
  EXPECT_TRUE(DatasetWriter(mixed.path(), small_info(), 20, 3, tokens - 1).complete());
}

TEST(DatasetWriter, RefusesToContinueADatasetMadeWithOtherSettings) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 4, 2);
  const auto before = files_of(folder.path());
  const std::string first = (folder / "shard-00000.h5").string();
  const auto error_with = [&](int64_t samples, int64_t shard, int64_t limit, uint64_t seed) {
    DatasetInfo info = small_info();
    info.seed = seed;
    return error_text([&] { DatasetWriter(folder.path(), info, samples, shard, limit); });
  };
  const uint64_t seed = small_info().seed;
  const std::string remedy = "; choose another output folder or remove this one";
  EXPECT_EQ(error_with(4, 2, 0, 5),
            first + ": made with seed 18446744073709551615, this run has seed 5" + remedy);
  EXPECT_EQ(error_with(6, 2, 0, seed), first + ": made with 4 prompts, this run has 6" + remedy);
  EXPECT_EQ(error_with(4, 3, 0, seed),
            first + ": made with prompts 0 to 1 in it, this run has 0 to 2 there" + remedy);
  EXPECT_EQ(error_with(4, 2, 1, seed),
            first + ": made with another limit of answer tokens than this run's 1" + remedy);
  EXPECT_EQ(error_with(2, 2, 0, seed), first + ": made with 4 prompts, this run has 2" + remedy);
  EXPECT_EQ(files_of(folder.path()), before);
}

TEST(DatasetWriter, RefusesADamagedShardInsteadOfBuildingOnIt) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 4, 2);
  const auto path = folder / "shard-00001.h5";
  overwrite(path, read_file(path).substr(0, 500));
  EXPECT_NE(error_text([&] {
              DatasetWriter(folder.path(), small_info(), 4, 2);
            }).find("shard-00001.h5: cut short, it has 500 of "),
            std::string::npos);
}

TEST(DatasetWriter, RefusesAFolderItCannotWrite) {
  const TempFolder folder;
  overwrite(folder / "file", "x");
  const auto open = [](const fs::path& path) {
    return error_text([&] { DatasetWriter(path, small_info(), 4, 2); });
  };
  EXPECT_EQ(
      open(folder / "file"),
      (folder / "file").string() + ": is a file, expected a folder; choose another output folder");
  EXPECT_EQ(open(folder / "file/dataset"),
            (folder / "file/dataset").string() +
                ": cannot be written (Not a directory); choose an output folder you may write to");
}

/// A file system of 64 KiB in memory, as long as the object lives.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path path, unsigned long flags = 0) : path_(std::move(path)) {
    fs::create_directory(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", flags, "size=64k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  fs::path path_;
  bool mounted_ = false;
};

TEST(DatasetWriter, RefusesAFolderWithoutPermissionAtTheStart) {
  const TempFolder folder;
  const fs::path closed = folder / "closed";
  const bool root = ::geteuid() == 0;  // may write wherever the disk itself allows it
  const SmallDisk disk(closed, MS_RDONLY);
  if (root && !disk.mounted()) GTEST_SKIP() << "no right to mount";
  if (!root) ::chmod(closed.c_str(), 0555);
  EXPECT_EQ(error_text([&] { DatasetWriter(closed, small_info(), 4, 2); }),
            closed.string() + ": cannot be written (" +
                (root ? "Read-only file system" : "Permission denied") +
                "); choose an output folder you may write to");
}

TEST(DatasetWriter, AFullDiskIsAnErrorThatKeepsTheFinalizedShards) {
  const TempFolder folder;
  const fs::path path = folder / "small";
  const SmallDisk disk(path);
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount";
  DatasetWriter writer(path, small_info(1000), 20, 1);
  int64_t i = 0;
  const std::string error = error_text([&] {
    for (; i < 20; ++i) writer.add(i, small_sample(i, 1000));
  });
  ASSERT_GT(i, 1);
  const std::string name = "shard-000" + std::string(i < 10 ? "0" : "") + std::to_string(i) + ".h5";
  EXPECT_EQ(error, (path / name).string() +
                       ": the disk is full; free some space or choose another output folder, then "
                       "run again");
  EXPECT_EQ(static_cast<int64_t>(files_of(path).size()), i);  // no part is left
  EXPECT_EQ(DatasetReader(path).size(), i);
}

}  // namespace
}  // namespace medusa
