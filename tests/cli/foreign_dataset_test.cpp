// Datasets of unknown origin, through the executable: whatever they hold, it is the user's to
// correct, said at once.
#include <sys/stat.h>

#include <map>

#include "../data/odd_hdf5.h"
#include "program.h"

namespace medusa::cli {
namespace {

using namespace fixtures;

/// Shards with a right checksum that must not be read, by what their refusal says.
std::map<std::string, std::string> foreign_shards(const std::string& other) {
  const auto odd = [](const std::string& name, const OddPart& part) {
    return odd_shard({{name, part}}, OddBase::Int8);
  };
  constexpr hsize_t kMany = hsize_t{1} << 40;
  return {{"is a list of 200 int64, not one value",
           odd("vocab_size", attribute_of(H5T_STD_I64LE, {200}))},
          {"is a list of 40 texts of 40 bytes, not one value",
           odd("format", attribute_of(text_type(40), {40}))},
          {"is a list of 1152921504606846976 texts of 16 bytes, more than the file's",
           odd("/prompt_id", dataset_of(text_type(16), {hsize_t{1} << 60}, OddLayout::Chunked))},
          {"'/tokens' is a list of 1099511627776 int32",
           odd("/tokens", dataset_of(H5T_STD_I32LE, {kMany}))},
          {"is a list of 1099511627776 texts of 1000 bytes",
           odd("/prompt_id", dataset_of(text_type(1000), {kMany}))},
          {"is stored in another file", odd("/tokens", external_storage(other))},
          {"is a virtual dataset", odd("/tokens", virtual_dataset(other))},
          {"is an external link", odd("/tokens", external_link(other))},
          {"is a soft link", odd("/tokens", soft_link(other))},
          {"is chunked and compressed",
           odd("/tokens", dataset_of(H5T_STD_I32LE, {9}, OddLayout::ForeignFilter))},
          {"its 'hidden_size' is 1152921504606846976",
           odd("hidden_size", number_attribute(int64_t{1} << 60))},
          {"its 'total' is 9223372036854775807", odd("total", number_attribute(INT64_MAX))}};
}

TEST(ForeignDataset, IsRefusedAtOnceByEveryCommandThatReadsIt) {
  const CliFixture place;
  const std::string fifo = (place / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string shard = "runs/tiny/dataset/shard-00000.h5";
  for (const auto& [words, bytes] : foreign_shards(fifo)) {
    write_text(place / shard, bytes);
    for (const std::string& command :
         {"inspect " + shard, std::string("inspect runs/tiny/dataset"),
          std::string("dataset export out.jsonl --config run.yaml"),
          std::string("dataset merge runs/tiny/dataset --config run.yaml --set run=runs/other")}) {
      const ProcessResult ran = place.run_until("KILL", 20, command);
      EXPECT_EQ(ran.status, 2) << command << "\n" << words << "\n" << ran.err;
      EXPECT_NE(ran.err.find(words), std::string::npos) << command << "\n" << ran.err;
      EXPECT_NE(ran.err.find("; "), std::string::npos) << "no remedy\n" << ran.err;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(place / "out.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(place / "runs/other/dataset"));
}

// Heads learn from what the model wrote and from texts that were there, in one run.
TEST(ForeignDataset, TextsAreReadAndMixed) {
  const CliFixture place;
  write_text(place / "tale.txt", "Once upon a time there was a little bird. It saw a big dog.");
  write_text(place / "more.jsonl", "{\"text\": \"Lily and Tom play in the park.\"}\n");
  const std::string read =
      "distill --prefill tale.txt --prefill more.jsonl --config run.yaml --set "
      "distill.text_tokens=8";
  ProcessResult ran = place.run(read);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("runs/tiny/dataset-text"), std::string::npos) << ran.err;
  EXPECT_NE(place.run(read).err.find("; 0 read now"), std::string::npos);
  ASSERT_EQ(place.run("distill --config run.yaml").status, 0);
  ran = place.run("inspect runs/tiny/dataset-text");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("complete                   yes"), std::string::npos) << ran.out;
  ran = place.run(
      "train --fresh --config run.yaml --set train.epochs=1 --set "
      "train.data=[runs/tiny/dataset,runs/tiny/dataset-text] --set "
      "train.data_weights=[1,0.5]");
  EXPECT_EQ(ran.status, 0) << ran.err;
  ran = place.run(read + " --questions prompts.jsonl");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("distill --prefill: found --questions"), std::string::npos) << ran.err;
  ran = place.run("distill --prefill missing.txt --config run.yaml");
  EXPECT_EQ(ran.status, 2);
  // A refusal takes nothing away, nor does --fresh take what is no shard.
  write_text(place / "runs/tiny/dataset-text/notes.txt", "mine");
  EXPECT_EQ(place.run(read + " --fresh --shard 0/2").status, 2);
  EXPECT_NE(place.run(read).err.find("; 0 read now"), std::string::npos);
  EXPECT_EQ(place.run(read + " --fresh --seed 4").status, 0);
  EXPECT_TRUE(std::filesystem::exists(place / "runs/tiny/dataset-text/notes.txt"));
}

TEST(ForeignDataset, WhatIsWholeIsRead) {
  const CliFixture place;
  write_text(place / "d/shard-00000.h5", odd_shard({}, OddBase::Int8));
  for (const std::string name : {"d", "d/shard-00000.h5"}) {
    const ProcessResult ran = place.run("inspect " + name);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find("2 answers, 4 answer tokens"), std::string::npos) << ran.out;
  }
}

}  // namespace
}  // namespace medusa::cli
