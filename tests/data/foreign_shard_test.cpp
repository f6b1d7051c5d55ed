// Shards of unknown origin: made by libhdf5 in ways that no shard of ours has, their checksum
// right. Each of them must be refused at once, and no other file may be opened for it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "data/dataset/dataset_reader.h"
#include "data/dataset/dataset_writer.h"
#include "data/dataset/shard_file.h"
#include "tests/base/allocation_peak.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tests/data/dataset_samples.h"
#include "tests/data/hdf5_fields.h"
#include "tests/data/odd_hdf5.h"

namespace medusa {
namespace {

using namespace fixtures;

constexpr hsize_t kHuge = hsize_t{1} << 60;

/// What a shard of these bytes is refused for, without path and remedy.
std::string refusal(const std::string& bytes) {
  const TempFolder folder;
  overwrite(folder / "s.h5", bytes);
  const size_t before = allocated_bytes();
  reset_peak();
  const std::string text = error_text([&] { ShardFile{folder / "s.h5"}; });
  EXPECT_LT(peak_bytes() - before, 2 * bytes.size() + (size_t{1} << 20)) << text;
  const std::string path = (folder / "s.h5").string() + ": ";
  if (!text.starts_with(path)) return text;
  const size_t rest =
      std::min(text.find(", expected an HDF5 file as data/dataset/FORMAT.md says; distill"),
               text.find("; remove it and run the command that wrote"));
  return text.substr(path.size(), rest - path.size());
}
std::string refusal(const std::string& name, const OddPart& part,
                    OddBase base = OddBase::Bfloat16) {
  return refusal(odd_shard({{name, part}}, base));
}
/// After numbers of the file's structure were replaced, by the names of hdf5_fields().
std::string damaged(const std::map<std::string, uint64_t>& fields) {
  std::string bytes = odd_shard({});
  for (const auto& [name, value] : fields) bytes = with_field(std::move(bytes), name, value);
  return refusal(bytes);
}
std::string damaged(const std::string& field, uint64_t value) { return damaged({{field, value}}); }

TEST(ForeignShard, WholeOnesAreRead) {
  for (const OddBase base :
       {OddBase::Bfloat16, OddBase::Int8, OddBase::NoStates, OddBase::NoSamples})
    EXPECT_EQ(refusal(odd_shard({}, base)), "(no error)");
  // What no shard of ours has but what says nothing of the rest.
  EXPECT_EQ(refusal(odd_shard({{"/more", dataset_of(H5T_STD_I64LE, {3})},
                               {"note", attribute_of(text_type(20), {})}})),
            "(no error)");
}

TEST(ForeignShard, AttributesAreOneValue) {
  EXPECT_EQ(refusal("vocab_size", attribute_of(H5T_STD_I64LE, {200})),
            "the attribute 'vocab_size' is a list of 200 int64, not one value");
  EXPECT_EQ(refusal("format", attribute_of(text_type(40), {40})),
            "the attribute 'format' is a list of 40 texts of 40 bytes, not one value");
  EXPECT_EQ(refusal("seed", attribute_of(H5T_STD_U64LE, {20, 30})),
            "the attribute 'seed' is a matrix [20, 30] of uint64, not one value");
  EXPECT_EQ(refusal("seed", attribute_of(H5T_STD_U64LE, {2, 3, 4})), "'seed' has 3 dimensions");
  EXPECT_EQ(refusal("seed", attribute_of(H5T_STD_I64LE, {})), "'seed' is an int64, not a uint64");
  EXPECT_EQ(refusal("version", attribute_of(H5T_STD_I32LE, {})),
            "'version' is an int32, not an int64");
  EXPECT_EQ(refusal("version", attribute_of(H5T_STD_I64BE, {})),
            "'version' holds big-endian int64 (type version 1)");
  EXPECT_EQ(refusal("version", attribute_of(H5T_IEEE_F64LE, {})),
            "'version' holds float64 (type version 1)");
  EXPECT_EQ(refusal("sampling", attribute_of(variable_text_type(), {})),
            "'sampling' holds texts or lists of variable length (type version 1)");
  EXPECT_EQ(refusal("sampling", attribute_of(H5T_STD_REF_OBJ, {})),
            "'sampling' holds references to other objects (type version 1)");
  EXPECT_EQ(refusal("format", nothing()), "'format', a fixed-length text, is missing");
}

TEST(ForeignShard, SizesAreThoseOfTheFile) {
  EXPECT_EQ(refusal("/prompt_id", dataset_of(text_type(16), {kHuge}, OddLayout::Chunked)),
            "'/prompt_id' is a list of 1152921504606846976 texts of 16 bytes, more than the file's "
            "5912 bytes hold");
  for (const auto& [name, type, count] : {std::tuple{"/tokens", H5T_STD_I32LE, hsize_t{1} << 40},
                                          {"/offsets", H5T_STD_I64LE, hsize_t{1} << 59},
                                          {"/prompt_id", text_type(1000), hsize_t{1} << 40},
                                          {"/hidden_scale", H5T_IEEE_F32LE, hsize_t{1} << 40}}) {
    const std::string found = refusal(name, dataset_of(type, {count}), OddBase::Int8);
    EXPECT_EQ(found.find(std::string("'") + name + "' is a list of "), 0U) << found;
    EXPECT_NE(found.find(", more than the file's "), std::string::npos) << found;
  }
  // Larger than libhdf5 would make them itself; the second number is how far they may grow.
  const auto list = [](const std::string& name, uint64_t size) {
    return damaged({{name + " shape 0", size}, {name + " shape 1", size}});
  };
  EXPECT_EQ(
      list("/offsets", uint64_t{1} << 62),
      "'/offsets' is a list of 4611686018427387904 int64, more than the file's 5912 bytes hold");
  EXPECT_EQ(
      list("/offsets", uint64_t{1} << 61),  // 2^64 bytes: none
      "'/offsets' is a list of 2305843009213693952 int64, more than the file's 5912 bytes hold");
  EXPECT_EQ(list("/offsets", uint64_t{1} << 63),
            "'/offsets' has a dimension of 9223372036854775808");
  EXPECT_EQ(
      damaged({{"/hidden shape 0", uint64_t{1} << 62},
               {"/hidden shape 1", 4},
               {"/hidden shape 2", uint64_t{1} << 62},
               {"/hidden shape 3", 4}}),
      "'/hidden' is a matrix [4611686018427387904, 4] of uint16, more than the file's 5912 bytes "
      "hold");
  EXPECT_EQ(damaged("/hidden shape 2", 5), "'/hidden' may grow");
  EXPECT_EQ(damaged("/tokens type size", 0), "'/tokens' holds int0 (type version 1)");
  EXPECT_EQ(damaged("/tokens layout size", 35),
            "'/tokens' has room for 35 bytes, its shape says 36");
  EXPECT_EQ(refusal("/tokens", dataset_of(H5T_STD_I32LE, {2, 2, 2})), "'/tokens' has 3 dimensions");
  EXPECT_EQ(refusal("/tokens", dataset_of(H5T_STD_I32LE, {})), "'/tokens' is an int32, not a list");
}

TEST(ForeignShard, NoOtherFileIsRead) {
  const TempFolder folder;
  const std::string secret = (folder / "secret").string(), fifo = (folder / "fifo").string();
  overwrite(secret, std::string(64, 's'));
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  overwrite(folder / "whole.h5", odd_shard({}));
  for (const std::string& other : {secret, fifo, (folder / "whole.h5").string()}) {
    EXPECT_EQ(refusal("/tokens", external_storage(other)), "'/tokens' is stored in another file");
    EXPECT_EQ(refusal("/tokens", virtual_dataset(other)),
              "'/tokens' is a virtual dataset, so stored in other files");
    EXPECT_EQ(refusal("/tokens", external_link(other)),
              "'/tokens' is an external link, so in another file");
    EXPECT_EQ(refusal("/tokens", soft_link(other)), "'/tokens' is a soft link");
  }
  // Names that nobody asks for are held to the same.
  EXPECT_EQ(refusal("/a", external_storage(secret)), "'/a' is stored in another file");
  EXPECT_EQ(refusal("/a", soft_link("/tokens")), "'/a' is a soft link");
  EXPECT_EQ(damaged("superblock driver", 96), "it is split over several files");
}

TEST(ForeignShard, NothingIsDecoded) {
  using enum OddLayout;
  const auto stored = [](OddLayout layout) {
    return refusal("/tokens", dataset_of(H5T_STD_I32LE, {9}, layout));
  };
  EXPECT_EQ(stored(Compact), "'/tokens' is stored in its header");
  EXPECT_EQ(stored(Chunked), "'/tokens' is chunked");
  EXPECT_EQ(stored(Compressed), "'/tokens' is chunked and compressed");
  EXPECT_EQ(stored(ForeignFilter), "'/tokens' is chunked and compressed");
  EXPECT_EQ(refusal("/tokens", group()), "'/tokens' is a group");
  EXPECT_EQ(refusal("/tokens", named_type()), "'/tokens' is a named type");
  // A list that was made and never written would be its fill value.
  EXPECT_EQ(refusal("/tokens",
                    [](hid_t file, const char* name) {
                      const hsize_t shape[] = {9};
                      const hid_t space = H5Screate_simple(1, shape, nullptr);
                      H5Dclose(H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT,
                                          H5P_DEFAULT, H5P_DEFAULT));
                      H5Sclose(space);
                    }),
            "the values of '/tokens' were not written");
}

TEST(ForeignShard, AForeignFilterNeverRuns) {
  const std::string bytes =
      odd_shard({{"/tokens", dataset_of(H5T_STD_I32LE, {9}, OddLayout::ForeignFilter)}});
  const int written = foreign_filter_calls();
  ASSERT_GT(written, 0);
  EXPECT_EQ(refusal(bytes), "'/tokens' is chunked and compressed");
  EXPECT_EQ(foreign_filter_calls(), written);
}

TEST(ForeignShard, EveryWalkThroughTheFileEnds) {
  const std::string bytes = odd_shard({});
  const auto root = [&](const std::string& name) {
    for (const Hdf5Field& field : hdf5_fields(bytes))
      if (field.name == name) return get_field(bytes, field);
    return uint64_t{0};
  };
  // The header's continuation leads back to its first piece, which holds the continuation.
  EXPECT_EQ(
      damaged({{"root continuation 0", root("superblock root") + 16}, {"root continuation 1", 24}}),
      "the object header of the root group holds more than 16 messages");
  // A tree whose only leaf is itself, or that says it is deep.
  EXPECT_EQ(damaged("tree child 0", root("root symbol table 0")),
            "a leaf of the root group's names does not begin as one");
  EXPECT_EQ(damaged("tree level", 255), "the root group holds more than 64 names");
  EXPECT_EQ(damaged("tree used", 65535), "the root group holds more than 64 names");
  EXPECT_EQ(damaged("leaf count", 65535), "the root group holds more than 64 names");
  EXPECT_EQ(damaged("root header messages", 65535),
            "the object header of the root group holds 65535 messages, more than 1024");
  EXPECT_EQ(damaged("/tokens header messages", 9),
            "the object header of '/tokens' holds 5 messages and says 9");
}

TEST(ForeignShard, EveryAddressLiesInTheFile) {
  const uint64_t undefined = UINT64_MAX;
  for (const char* field :
       {"superblock root", "root symbol table 0", "root symbol table 1", "root continuation 0",
        "root continuation 1", "root header size", "tree child 0", "heap address", "heap size",
        "/tokens link name", "/tokens link header", "/tokens header size", "/tokens layout address",
        "/hidden layout address", "vocab_size name size", "vocab_size type size",
        "vocab_size message size", "/offsets type message size"})
    for (const uint64_t value : {undefined, undefined - 1, undefined - 7, uint64_t{1} << 63,
                                 (uint64_t{1} << 63) - 1, uint64_t{1} << 32, uint64_t{100'000}})
      EXPECT_NE(damaged(field, value), "(no error)") << field << " " << value;
  EXPECT_EQ(damaged("superblock end", uint64_t{1} << 63),
            "cut short, it has 5912 of 9223372036854775808 bytes");
}

TEST(ForeignShard, ContentsDoNotLieOverOneAnother) {
  // Sixty names for one list of 40 KB: each is inside the file, all of them are not.
  std::map<std::string, OddPart> parts{{"/a", dataset_of(H5T_STD_I64LE, {5000})}};
  for (int i = 10; i < 50; ++i) parts["/b" + std::to_string(i)] = hard_link("/a");
  const std::string found = refusal(odd_shard(parts));
  EXPECT_EQ(found.find("its contents have 16"), 0U) << found;
}

TEST(ForeignShard, NewerFormsOfHdf5AreNamed) {
  EXPECT_EQ(damaged("superblock 0", 2),
            "it is written in a newer form of HDF5 (superblock version 2, not 0)");
  EXPECT_EQ(damaged("/tokens header version", 'O'), "'/tokens' is written in a newer form of HDF5");
  EXPECT_EQ(damaged("superblock 5", 4),
            "its addresses have 4 and its lengths 8 bytes, or it is of an unknown version");
  EXPECT_EQ(damaged("superblock base", 512), "it begins behind a block of another program");
}

TEST(ForeignShard, NumbersThatNoDatasetHasAreRefused) {
  const auto number = [](const char* name, int64_t value) {
    return refusal(name, number_attribute(value), OddBase::Int8);
  };
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(number("vocab_size", int64_t{1} << 60),
            "inconsistent, its 'vocab_size' is 1152921504606846976, expected 1 to 16777216");
  EXPECT_EQ(number("vocab_size", 60), "inconsistent, token 7 is 60, the vocabulary has 60");
  EXPECT_EQ(number("hidden_size", kLargest),
            "inconsistent, its 'hidden_size' is 9223372036854775807, expected 0 to 1048576");
  EXPECT_EQ(number("hidden_size", -1),
            "inconsistent, its 'hidden_size' is -1, expected 0 to 1048576");
  EXPECT_EQ(number("total", kLargest),
            "inconsistent, its 'total' is 9223372036854775807, expected 0 to 281474976710656");
  EXPECT_EQ(number("first", kLargest),
            "inconsistent, its 'first' is 9223372036854775807, expected 0 to 2");
  EXPECT_EQ(number("count", kLargest),
            "inconsistent, its 'count' is 9223372036854775807, expected 0 to 2");
  EXPECT_EQ(number("count", 1), "inconsistent, it holds 2 samples of prompts 0 to 1 of 2");
  EXPECT_EQ(number("last", 2), "inconsistent, its 'last' is 2, expected 0 to 1");
  EXPECT_EQ(number("states_budget", -1),
            "inconsistent, its 'states_budget' is -1, expected 0 to 9223372036854775807");
}

/// A dataset [values] in the place of the shard's own.
template <typename T>
OddPart values_of(hid_t type, const std::vector<T>& values) {
  return [=](hid_t file, const char* name) {
    const hsize_t shape[] = {values.size()};
    const hid_t space = H5Screate_simple(1, shape, nullptr);
    const hid_t dataset =
        H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(dataset);
    H5Sclose(space);
  };
}

TEST(ForeignShard, OffsetsAscendInsideTheirLists) {
  using Int64s = std::vector<int64_t>;
  const auto offsets = [](const char* name, const Int64s& values) {
    return refusal(name, values_of(H5T_STD_I64LE, values));
  };
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max(), kLeast = -kLargest - 1;
  EXPECT_EQ(offsets("/offsets", {0, kLargest, 9}),
            "inconsistent, sample 0 runs from token 0 to 9223372036854775807");
  EXPECT_EQ(offsets("/offsets", {0, kLeast, 9}),
            "inconsistent, sample 0 runs from token 0 to -9223372036854775808");
  EXPECT_EQ(offsets("/answer_start", {kLargest, 2}),
            "inconsistent, sample 0 has 5 tokens and its answer starts at 9223372036854775807");
  EXPECT_EQ(offsets("/answer_start", {3}),
            "inconsistent, it has 1 answer starts, 3 offsets and 2 prompt ids");
  EXPECT_EQ(offsets("/hidden_offsets", {0, kLeast, 4}),
            "inconsistent, the hidden rows of sample 0 run from 0 to -9223372036854775808");
  EXPECT_EQ(offsets("/hidden_offsets", {0, 4}),
            "inconsistent, it has 2 samples and 2 hidden offsets");
  EXPECT_EQ(refusal("/hidden", dataset_of(H5T_STD_U16LE, {4, 4})),
            "inconsistent, its hidden states have 4 columns, hidden_size says 3");
  EXPECT_EQ(refusal("/hidden", dataset_of(H5T_STD_U16LE, {12})),
            "'/hidden' is a list of 12 uint16, not a matrix of uint16");
}

TEST(ForeignShard, ScalesAreThoseOfNumbers) {
  const auto scales = [](float third) {
    return refusal("/hidden_scale", values_of<float>(H5T_IEEE_F32LE, {1, 0, third, 2}),
                   OddBase::Int8);
  };
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(scales(kInfinite), "inconsistent, the scale of hidden row 2 is inf");
  EXPECT_EQ(scales(-1), "inconsistent, the scale of hidden row 2 is -1");
  EXPECT_EQ(scales(std::nanf("")), "(no error)");  // training says which sample it is
  EXPECT_EQ(refusal("/hidden_scale", dataset_of(H5T_IEEE_F32LE, {5}), OddBase::Int8),
            "inconsistent, its 4 rows of hidden states have 5 scales");
}

TEST(ForeignShard, IdsComeBackAsTheyAre) {
  const TempFolder folder;
  const std::string id = "\x1b]0;x\x07\n\xff";  // who prints them shows what they hold
  overwrite(folder / "s.h5", odd_shard({{"/prompt_id", [&](hid_t file, const char* name) {
                                           const std::string both = id + id;
                                           const hsize_t shape[] = {2};
                                           const hid_t space = H5Screate_simple(1, shape, nullptr);
                                           const hid_t dataset =
                                               H5Dcreate2(file, name, text_type(id.size()), space,
                                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                                           H5Dwrite(dataset, text_type(id.size()), H5S_ALL, H5S_ALL,
                                                    H5P_DEFAULT, both.data());
                                           H5Dclose(dataset);
                                           H5Sclose(space);
                                         }}}));
  EXPECT_EQ(ShardFile(folder / "s.h5").samples().prompt_id, (std::vector{id, id}));
}

TEST(ForeignShard, DatasetsWithStatesOfTwoWidthsAreNotMixed) {
  const TempFolder folder;
  write_small_dataset(folder / "three", 3, 3, 3);
  DatasetInfo info = small_info(5);
  DatasetWriter writer(folder / "five", info, 1, 1);
  writer.add(0, small_sample(7, 5));
  const WeightedFolder both[] = {{folder / "three"}, {folder / "five"}};
  const std::string text = error_text(folder, [&] { DatasetReader{both}; });
  EXPECT_EQ(text.find("<>/five: made with states of 5, <>/three with 3, expected"), 0U) << text;
}

}  // namespace
}  // namespace medusa
