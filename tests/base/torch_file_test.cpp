#include "base/formats/torch_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;

const std::string kGolden = MEDUSA_SOURCE_DIR "/tests/golden/";

template <typename T>
T number_at(const SafetensorsEntry& entry, size_t i) {
  T value;
  std::memcpy(&value, entry.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// The halves in the golden file are 0 to 0.75 in steps of a quarter.
double half_value(uint16_t bits) {
  return bits == 0 ? 0
                   : std::ldexp(1.0 + (bits & 0x3ffU) / 1024.0, static_cast<int>(bits >> 10U) - 15);
}

double value_at(const SafetensorsEntry& entry, size_t i) {
  if (entry.dtype == "F64") return number_at<double>(entry, i);
  if (entry.dtype == "F32") return number_at<float>(entry, i);
  if (entry.dtype == "F16") return half_value(number_at<uint16_t>(entry, i));
  if (entry.dtype == "BF16")
    return std::bit_cast<float>(uint32_t{number_at<uint16_t>(entry, i)} << 16U);
  EXPECT_EQ(entry.dtype, "I64");
  return static_cast<double>(number_at<int64_t>(entry, i));
}

TEST(TorchFile, ReadsWhatTorchSaveWrote) {
  const TorchFile file(kGolden + "torch_save.pt");
  const auto expected = nlohmann::json::parse(read_file(kGolden + "torch_save.json"));
  ASSERT_EQ(file.entries().size(), expected.size());
  for (const SafetensorsEntry& entry : file.entries()) {
    SCOPED_TRACE(entry.name);
    const auto& tensor = expected.at(entry.name);
    EXPECT_EQ(entry.shape, tensor.at("shape").get<std::vector<int64_t>>());
    const auto values = tensor.at("values").get<std::vector<double>>();
    ASSERT_EQ(entry.bytes.size(),
              values.size() * static_cast<size_t>(safetensors_item_size(entry.dtype)));
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(value_at(entry, i), values[i]) << i;
  }
}

TEST(TorchFile, TensorsThatWereOneHaveTheSameBytes) {
  const TorchFile file(kGolden + "torch_save.pt");
  const auto bytes_of = [&](std::string_view name) {
    for (const SafetensorsEntry& entry : file.entries())
      if (entry.name == name) return entry.bytes.data();
    return static_cast<const uint8_t*>(nullptr);
  };
  EXPECT_EQ(bytes_of("tied"), bytes_of("half"));
  EXPECT_NE(bytes_of("tied"), bytes_of("brain"));
}

TEST(TorchFile, WrittenThenReadIsTheSame) {
  const fixtures::TempFolder folder;
  const std::vector<uint8_t> bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<SafetensorsEntry> entries{{"0.weight", "F16", {2, 3}, bytes},
                                              {"1.weight", "F32", {}, std::span(bytes).first(4)},
                                              {"empty", "I64", {0, 5}, {}}};
  write_torch_file(folder / "a.pt", entries);
  const TorchFile file(folder / "a.pt");
  ASSERT_EQ(file.entries().size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const SafetensorsEntry& read = file.entries()[i];
    EXPECT_EQ(read.name, entries[i].name);
    EXPECT_EQ(read.dtype, entries[i].dtype);
    EXPECT_EQ(read.shape, entries[i].shape);
    EXPECT_TRUE(std::equal(read.bytes.begin(), read.bytes.end(), entries[i].bytes.begin(),
                           entries[i].bytes.end()));
  }
  const std::string first = read_file(folder / "a.pt");
  write_torch_file(folder / "a.pt", entries);
  EXPECT_EQ(read_file(folder / "a.pt"), first);
}

/// A file of torch.save with this pickle and one storage of 8 bytes.
class TorchFileErrors : public testing::Test {
 protected:
  std::string error(const std::string& pickle, const std::string& more = "") {
    std::vector<ZipMember> members{{"x/data.pkl", {pickle}}, {"x/data/0", {"12345678"}}};
    if (!more.empty()) members.push_back({"x/byteorder", {more}});
    write_zip(path_, members);
    return cleaned(error_text([&] { TorchFile file(path_); }));
  }
  std::string cleaned(std::string text) {
    const size_t at = text.find(path_.string());
    if (at != std::string::npos) text.replace(at, path_.string().size(), "<>");
    return text;
  }
  /// A dict with one tensor "w" over the storage.
  static std::string one_tensor(const std::string& type, const std::string& offset,
                                const std::string& shape, const std::string& strides) {
    using namespace std::string_literals;
    const auto text = [](const std::string& value) {
      std::string coded = "X";
      coded += static_cast<char>(value.size());
      coded += "\0\0\0"s;
      return coded += value;
    };
    return "\x80\x02}" + text("w") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
           "ctorch\n" + type + "\n" + text("0") + text("cpu") + "K\x02tQ" + offset + "(" + shape +
           "t(" + strides + "t\x89)tRs.";
  }

  fixtures::TempFolder folder_;
  std::filesystem::path path_ = folder_ / "a.pt";
};

constexpr const char* kTorchRemedy =
    "; save a dict of tensors with torch.save or as safetensors, or choose another file";

TEST_F(TorchFileErrors, ReadsTheExampleThatTheErrorsAreMadeFrom) {
  using namespace std::string_literals;
  EXPECT_EQ(error(one_tensor("FloatStorage", "K\0"s, "K\x02", "K\x01")), "(no error)");
}

TEST_F(TorchFileErrors, RefusesTensorsThatAreNotInTheirStorage) {
  using namespace std::string_literals;
  const std::string past = std::string(
                               "<>: tensor 'w' reaches past its 8 stored bytes, expected them to "
                               "hold it") +
                           kTorchRemedy;
  EXPECT_EQ(error(one_tensor("FloatStorage", "K\0"s, "K\x03", "K\x01")), past);
  EXPECT_EQ(error(one_tensor("FloatStorage", "K\x01", "K\x02", "K\x01")), past);
  EXPECT_EQ(error(one_tensor("DoubleStorage", "K\0"s, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
                             "K\x01")),
            past);
  EXPECT_EQ(error(one_tensor("FloatStorage", "K\0"s, "K\x02", "K\x02")),
            std::string("<>: tensor 'w' does not lie in one piece, expected .contiguous() "
                        "tensors") +
                kTorchRemedy);
  EXPECT_EQ(
      error(one_tensor("FloatStorage", "K\0"s, "K\x02K\x01", "K\x01")),
      std::string("<>: 'w' is not described as a tensor, expected a dense one") + kTorchRemedy);
}

TEST_F(TorchFileErrors, RefusesOtherContents) {
  EXPECT_EQ(error("\x80\x02]."),
            std::string("<>: holds something else, expected a dict of tensors") + kTorchRemedy);
  EXPECT_EQ(error("\x80\x02}K\x01K\x02s."),
            std::string("<>: has a key that is no name, expected names of tensors") + kTorchRemedy);
  EXPECT_EQ(error("\x80\x02}.", "big"),
            std::string("<>: was written on a big-endian machine, expected little-endian "
                        "numbers") +
                kTorchRemedy);
}

TEST_F(TorchFileErrors, RefusesFilesThatAreNoArchiveOrWereAltered) {
  constexpr const char* kAgain = "; copy or download the file again, or choose another";
  write_file(path_, "\x80\x02}.");
  EXPECT_EQ(cleaned(error_text([&] { TorchFile file(path_); })),
            std::string("<>: has no list of members at its end, expected a zip archive: it is cut "
                        "short or something else") +
                kAgain);
  write_zip(path_, std::vector<ZipMember>{{"x/data", {"1"}}});
  EXPECT_EQ(cleaned(error_text([&] { TorchFile file(path_); })),
            std::string("<>: is a zip archive without data.pkl, expected a file of torch.save") +
                kTorchRemedy);
  std::string bytes = read_file(kGolden + "torch_save.pt");
  bytes[bytes.find("ctorch") + 1] ^= 1;
  write_file(path_, bytes);
  EXPECT_EQ(cleaned(error_text([&] { TorchFile file(path_); })),
            std::string("<>: member 'torch_save/data.pkl' does not have its checksum, expected "
                        "bytes as they were written") +
                kAgain);
  bytes = read_file(kGolden + "torch_save.pt");
  bytes[bytes.find("PK\x01\x02") + 10] = 8;
  write_file(path_, bytes);
  EXPECT_EQ(cleaned(error_text([&] { TorchFile file(path_); })),
            std::string("<>: member 'torch_save/data.pkl' is compressed or encrypted, expected "
                        "members stored as they are, as torch.save writes them") +
                kAgain);
}

}  // namespace
}  // namespace medusa
