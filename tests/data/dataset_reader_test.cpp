#include "data/dataset/dataset_reader.h"

#include <gtest/gtest.h>

#include <thread>

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

std::string open_error(const fs::path& folder) {
  return error_text([&] { DatasetReader{folder}; });
}

std::vector<uint16_t> hidden_of(const DatasetReader& reader, int64_t i) {
  std::vector<uint16_t> hidden(reader.answer(i).size() *
                               static_cast<size_t>(reader.info().hidden_size));
  reader.read_hidden(i, hidden);
  return hidden;
}

TEST(DatasetReader, GivesBackEverySampleThatWasWritten) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 11, 3);
  const DatasetReader reader(folder.path());
  ASSERT_EQ(reader.size(), 11);
  EXPECT_EQ(reader.num_shards(), 4);
  EXPECT_TRUE(reader.complete());
  EXPECT_FALSE(find_difference(reader.info(), small_info()));
  int64_t answer_tokens = 0;
  for (int64_t i = 0; i < 11; ++i) {
    const Sample expected = small_sample(i);
    const auto tokens = reader.tokens(i);
    EXPECT_EQ(std::vector<TokenId>(tokens.begin(), tokens.end()), expected.tokens);
    EXPECT_EQ(reader.answer_start(i), expected.answer_start);
    EXPECT_EQ(reader.prompt_id(i), expected.prompt_id);
    EXPECT_EQ(hidden_of(reader, i), expected.hidden);
    answer_tokens += expected.answer_length();
  }
  EXPECT_EQ(reader.num_answer_tokens(), answer_tokens);
}

TEST(DatasetReader, ReadsHiddenStatesFromManyThreads) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 60, 7);
  const DatasetReader reader(folder.path());
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int64_t n = 0; n < 600; ++n) {
        const int64_t i = (n * 7 + static_cast<int64_t>(t)) % 60;
        wrong[t] += hidden_of(reader, i) != small_sample(i).hidden;
      }
    });
  for (auto& each : threads) each.join();
  EXPECT_EQ(wrong, (std::vector<int>{0, 0, 0, 0}));
}

TEST(DatasetReader, WorksWithoutHiddenStates) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 5, 2, 0);
  const DatasetReader reader(folder.path());
  EXPECT_FALSE(reader.has_hidden());
  EXPECT_EQ(reader.size(), 5);
}

TEST(DatasetReader, TheFingerprintIsOfTheTextNotOfItsStorage) {
  const TempFolder a, b, c;
  write_small_dataset(a.path(), 6, 2);
  write_small_dataset(b.path(), 6, 4, 0);  // other shards, no hidden states
  write_small_dataset(c.path(), 5, 2);
  const std::string fingerprint = DatasetReader(a.path()).fingerprint();
  EXPECT_EQ(DatasetReader(b.path()).fingerprint(), fingerprint);
  EXPECT_NE(DatasetReader(c.path()).fingerprint(), fingerprint);
}

TEST(DatasetReader, AnInterruptedDatasetIsReadableAndSaysSo) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 6, 2);
  fs::remove(folder / "shard-00002.h5");
  const DatasetReader reader(folder.path());
  EXPECT_FALSE(reader.complete());
  EXPECT_EQ(reader.size(), 4);
}

TEST(DatasetReader, RefusesAFolderWithoutADataset) {
  const TempFolder folder;
  EXPECT_EQ(open_error(folder.path()),
            folder.path().string() +
                ": holds no shard-00000.h5, expected a dataset; check the path or run `medusa "
                "distill` first");
  EXPECT_EQ(open_error(folder / "none"),
            (folder / "none").string() +
                ": no such folder, expected a dataset; check the path or run `medusa distill` "
                "first");
}

TEST(DatasetReader, RefusesAGapBetweenShards) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 8, 2);
  fs::remove(folder / "shard-00001.h5");
  EXPECT_EQ(
      open_error(folder.path()),
      folder.path().string() +
          ": shard-00001.h5 is missing before shard-00002.h5; run the command that wrote this "
          "dataset again with the same options: `medusa distill` writes only what is missing; "
          "for `medusa dataset` remove the whole folder");
  fs::rename(folder / "shard-00002.h5", folder / "shard-00001.h5");
  fs::rename(folder / "shard-00003.h5", folder / "shard-00002.h5");
  EXPECT_EQ(open_error(folder.path()),
            (folder / "shard-00001.h5").string() +
                ": begins with prompt 4, expected prompt 2; the shards are of different runs or "
                "were renamed, distill into an empty folder");
}

TEST(DatasetReader, RefusesAShardMadeWithOtherSettings) {
  const TempFolder folder, other;
  write_small_dataset(folder.path(), 4, 2);
  write_small_dataset(other.path(), 4, 2, 5);
  fs::copy_file(other / "shard-00001.h5", folder / "shard-00001.h5",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(open_error(folder.path()),
            (folder / "shard-00001.h5").string() +
                ": made with hidden_size 5, shard-00000.h5 with hidden_size 3; the shards are of "
                "different runs, distill into an empty folder");
}

TEST(DatasetReader, RefusesAShardBehindTheLast) {
  const TempFolder folder, longer;
  write_small_dataset(folder.path(), 4, 2);
  write_small_dataset(longer.path(), 6, 2);
  fs::copy_file(longer / "shard-00002.h5", folder / "shard-00002.h5");
  EXPECT_EQ(open_error(folder.path()),
            (folder / "shard-00002.h5").string() +
                ": stands behind shard-00001.h5, which says it is the last; the shards are of "
                "different runs, distill into an empty folder");
}

TEST(DatasetReader, RefusesAnAlteredShard) {
  const TempFolder folder;
  write_small_dataset(folder.path(), 4, 2);
  std::string bytes = read_file(folder / "shard-00001.h5");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] + 1);
  overwrite(folder / "shard-00001.h5", bytes);
  EXPECT_EQ(
      open_error(folder.path())
          .rfind((folder / "shard-00001.h5").string() + ": altered, its bytes have SHA-256 ", 0),
      0u);
}

}  // namespace
}  // namespace medusa
