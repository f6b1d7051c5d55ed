#include "data/dataset/shard_file.h"

#include <gtest/gtest.h>

#include "base/fingerprint.h"
#include "data/dataset/dataset_format.h"
#include "data/dataset/hdf5_writer.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/dataset_samples.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::overwrite;
using fixtures::small_info;
using fixtures::small_sample;
using fixtures::TempFolder;

constexpr const char* kAgain =
    "; remove it and run the command that wrote this dataset again with the same options: "
    "`medusa distill` writes only what is missing; for `medusa dataset` remove the whole folder";

ShardHeader small_header() { return {small_info(), 4, 3, 9, false}; }

ShardSamples small_samples() {
  ShardSamples samples;
  for (int64_t i = 4; i < 7; ++i) samples.append(small_sample(i));
  return samples;
}

/// The error of opening a file with these bytes, without the file's path in front.
std::string shard_error(const std::string& bytes) {
  const TempFolder folder;
  const auto path = folder / "shard-00001.h5";
  overwrite(path, bytes);
  const std::string text = error_text([&] { ShardFile{path}; });
  const std::string place = path.string() + ": ";
  return text.rfind(place, 0) == 0 ? text.substr(place.size()) : text;
}

/// The same after a change that the checksum covers, as only a program of ours could make it.
template <typename Change>
std::string finalized_error(const Change& change) {
  ShardHeader header = small_header();
  ShardSamples samples = small_samples();
  change(header, samples);
  return shard_error(encode_shard(header, samples));
}

TEST(ShardFile, GivesBackWhatWasEncoded) {
  const TempFolder folder;
  overwrite(folder / "a.h5", encode_shard(small_header(), small_samples()));
  const ShardFile shard(folder / "a.h5");
  EXPECT_FALSE(find_difference(shard.header().info, small_info()));
  EXPECT_EQ(shard.header().first, 4);
  EXPECT_EQ(shard.header().count, 3);
  EXPECT_EQ(shard.header().total, 9);
  EXPECT_FALSE(shard.header().last);
  const ShardSamples expected = small_samples();
  EXPECT_EQ(shard.samples().tokens, expected.tokens);
  EXPECT_EQ(shard.samples().offsets, expected.offsets);
  EXPECT_EQ(shard.samples().answer_start, expected.answer_start);
  EXPECT_EQ(shard.samples().prompt_id, expected.prompt_id);
  EXPECT_EQ(shard.samples().hidden_offsets, expected.hidden_offsets);
  std::vector<uint16_t> hidden(expected.hidden.size());
  shard.read_hidden(0, hidden);
  EXPECT_EQ(hidden, expected.hidden);
}

TEST(ShardFile, HoldsNoSamplesToo) {
  const TempFolder folder;
  overwrite(folder / "a.h5", encode_shard(small_header(), {}));
  EXPECT_EQ(ShardFile(folder / "a.h5").samples().size(), 0);
}

TEST(ShardFile, EqualContentGivesEqualBytes) {
  EXPECT_EQ(encode_shard(small_header(), small_samples()),
            encode_shard(small_header(), small_samples()));
}

TEST(ShardFile, EveryAlteredByteIsFound) {
  const std::string bytes = encode_shard(small_header(), small_samples());
  const TempFolder folder;
  for (size_t at = 0; at < bytes.size(); at += 13) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    overwrite(folder / "a.h5", altered);
    EXPECT_NE(error_text([&] { ShardFile{folder / "a.h5"}; }), "(no error)") << "byte " << at;
  }
}

TEST(ShardFile, SaysWhichChecksumsDiffer) {
  std::string bytes = encode_shard(small_header(), small_samples());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const std::string text = shard_error(bytes);
  EXPECT_EQ(text.substr(0, 36), "altered, its bytes have SHA-256 " + text.substr(32, 4));
  EXPECT_EQ(text.substr(44), "…, expected " + text.substr(58, 12) + "…" + kAgain);
}

TEST(ShardFile, RefusesAFileCutShortAnywhere) {
  const std::string bytes = encode_shard(small_header(), small_samples());
  EXPECT_EQ(shard_error(bytes.substr(0, 1000)),
            "cut short, it has 1000 of " + std::to_string(bytes.size()) + " bytes" + kAgain);
  EXPECT_EQ(shard_error(bytes.substr(0, 5)),
            std::string("not an HDF5 file, expected a shard of a dataset") + kAgain);
  EXPECT_EQ(shard_error(""), "the file is empty; copy or download it again");
  for (size_t size = 0; size < bytes.size(); size += 97)
    EXPECT_NE(shard_error(bytes.substr(0, size)), "(no error)") << size;
}

TEST(ShardFile, RefusesForeignFiles) {
  EXPECT_EQ(shard_error("PK\x03\x04 a zip archive of some size"),
            std::string("not an HDF5 file, expected a shard of a dataset") + kAgain);
  Hdf5Builder foreign;
  foreign.text("title", "measurements");
  EXPECT_EQ(shard_error(foreign.bytes()),
            std::string("an HDF5 file of another program, expected a shard of a dataset") + kAgain);
}

/// A shard as encode_shard() writes it, with a word replaced by one as long and the checksum
/// renewed.
std::string with_word(std::string bytes, const std::string& word, const std::string& other) {
  bytes.replace(bytes.find(word), word.size(), other);
  const size_t digits =
      bytes.find(dataset_format::kChecksumWord) + dataset_format::kChecksumWord.size();
  bytes.replace(digits, 64, std::string(64, '0'));
  return bytes.replace(digits, 64, fingerprint_text(bytes).substr(7));
}

TEST(ShardFile, RefusesAnotherFormatAndVersion) {
  const std::string bytes = encode_shard(small_header(), small_samples());
  EXPECT_EQ(shard_error(with_word(bytes, "medusa-dataset", "medusa-samples")),
            "holds 'medusa-samples', expected 'medusa-dataset'; check the path");
  // In the file an attribute is its name, padded to 8 bytes, its type (16), its shape (8), its
  // value.
  const size_t value = bytes.find(std::string("version\0", 8)) + 32;
  ASSERT_EQ(bytes.substr(value, 8), std::string("\1\0\0\0\0\0\0\0", 8));
  std::string newer = bytes;
  newer[value] = 3;
  EXPECT_EQ(shard_error(with_word(newer, "version", "version")),
            "format version 3, this program reads versions 1 and 2; use the program that wrote it "
            "or distill again");
}

TEST(ShardFile, RefusesAMissingDataset) {
  const std::string bytes = encode_shard(small_header(), small_samples());
  EXPECT_EQ(shard_error(with_word(bytes, "tokens\0", "tekons\0")),
            "'/tokens', a list of int32, is missing, expected an HDF5 file as "
            "data/dataset/FORMAT.md says; "
            "distill the dataset again, or have its maker write it so");
}

TEST(ShardFile, RefusesBadOffsets) {
  const auto inconsistent = [](const std::string& found) {
    return "inconsistent, " + found + kAgain;
  };
  using Header = ShardHeader;
  using Samples = ShardSamples;
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.offsets[1] = 100; }),
            inconsistent("sample 0 runs from token 0 to 100"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.offsets[1] = -1; }),
            inconsistent("sample 0 runs from token 0 to -1"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.offsets.back() += 1; }),
            inconsistent("its offsets run from 0 to 13, its tokens from 0 to 12"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.offsets.pop_back(); }),
            inconsistent("it has 3 answer starts, 3 offsets and 3 prompt ids"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.answer_start[0] = 0; }),
            inconsistent("sample 0 has 3 tokens and its answer starts at 0"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.answer_start[2] = 4; }),
            inconsistent("sample 2 has 4 tokens and its answer starts at 4"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.tokens[5] = 100; }),
            inconsistent("token 5 is 100, the vocabulary has 100"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.hidden_offsets[1] += 1; }),
            inconsistent("sample 0 has 1 answer tokens and 2 hidden rows"));
  EXPECT_EQ(finalized_error([](Header&, Samples& s) { s.hidden.resize(s.hidden.size() - 3); }),
            inconsistent("its hidden offsets do not fit its 5 hidden rows"));
  EXPECT_EQ(finalized_error([](Header& h, Samples&) { h.count = 2; }),
            inconsistent("it holds 3 samples of prompts 4 to 6 of 9"));
}

TEST(ShardFile, FindsOnlyFilesWithAShardsName) {
  const TempFolder folder;
  for (const char* name : {"shard-00002.h5", "shard-00010.h5", "shard-123456.h5", "shard-3.h5",
                           "shard-00004.h5.part-77", "notes.txt", "shard-000005.h5"})
    overwrite(folder / name, "");
  std::vector<int64_t> numbers;
  for (const auto& [number, path] : find_shards(folder.path())) numbers.push_back(number);
  EXPECT_EQ(numbers, (std::vector<int64_t>{2, 10, 123456}));
}

TEST(ShardFile, SaysInWhatTwoDatasetsDiffer) {
  const auto difference = [](const auto& change) {
    DatasetInfo other = small_info();
    change(other);
    const auto found = find_difference(small_info(), other);
    return found ? found->left + " | " + found->right : "(none)";
  };
  using Info = DatasetInfo;
  EXPECT_EQ(difference([](Info&) {}), "(none)");
  EXPECT_EQ(difference([](Info& i) { i.backbone = "sha256:b1"; }),
            "backbone sha256:b0 | backbone sha256:b1");
  EXPECT_EQ(difference([](Info& i) { i.tokenizer = "sha256:71"; }),
            "tokenizer sha256:70 | tokenizer sha256:71");
  EXPECT_EQ(difference([](Info& i) { i.prompts = "sha256:98"; }),
            "prompts sha256:99 | prompts sha256:98");
  EXPECT_EQ(difference([](Info& i) { i.sampling = "temperature: 0.7\ntop_p: 0.95\n"; }),
            "sampling 'top_p: 0.9' | sampling 'top_p: 0.95'");
  EXPECT_EQ(difference([](Info& i) { i.seed = 2; }), "seed 18446744073709551615 | seed 2");
  EXPECT_EQ(difference([](Info& i) { i.vocab_size = 7; }), "vocab_size 100 | vocab_size 7");
  EXPECT_EQ(difference([](Info& i) { i.hidden_size = 0; }), "hidden_size 3 | hidden_size 0");
}

}  // namespace
}  // namespace medusa
