#include "base/formats/safetensors_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace medusa {
namespace {
namespace fs = std::filesystem;

constexpr const char* kSafetensorsRemedy = "; copy or download the file again, or choose another";

class SafetensorsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("safetensors_file.") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = folder_ / "a.safetensors";
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A file of this header text and this many bytes of data.
  void write(const std::string& header, size_t data_bytes) const {
    std::string length(8, '\0');
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
    write_file(path_, length + header + std::string(data_bytes, '\1'));
  }

  /// The message that reading the file gives, without the path before and the remedy behind.
  std::string error() const {
    try {
      const SafetensorsFile file(path_);
    } catch (const UserError& caught) {
      const std::string text = caught.what();
      const std::string where = path_.string() + ": ";
      EXPECT_TRUE(text.starts_with(where)) << text;
      EXPECT_TRUE(text.ends_with(kSafetensorsRemedy)) << text;
      return text.substr(where.size(),
                         text.size() - where.size() - std::strlen(kSafetensorsRemedy));
    }
    return "no error";
  }

  fs::path folder_, path_;
};

using Metadata = std::map<std::string, std::string>;

const std::vector<uint8_t> kBytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

SafetensorsEntry entry(const std::string& name, const std::string& dtype,
                       const std::vector<int64_t>& shape, size_t bytes) {
  return {name, dtype, shape, std::span(kBytes).first(bytes)};
}

TEST_F(SafetensorsFileTest, ReadsWhatWasWritten) {
  const std::vector<SafetensorsEntry> entries{
      entry("b", "F32", {1, 2}, 8), entry("a", "U8", {3}, 3), entry("none", "BF16", {0, 7}, 0),
      entry("one", "I64", {}, 8)};
  write_safetensors(path_, entries, {{"format", "pt"}, {"step", "12"}});
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"step", "12"}}));
  ASSERT_EQ(file.entries().size(), 4u);
  for (const auto& written : entries) {
    const SafetensorsEntry* read = file.find(written.name);
    ASSERT_NE(read, nullptr) << written.name;
    EXPECT_EQ(read->dtype, written.dtype);
    EXPECT_EQ(read->shape, written.shape);
    EXPECT_EQ(std::vector(read->bytes.begin(), read->bytes.end()),
              std::vector(written.bytes.begin(), written.bytes.end()));
  }
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST_F(SafetensorsFileTest, WritesTheSameBytesInWhateverOrderTheEntriesCome) {
  write_safetensors(path_, std::vector{entry("b", "U8", {3}, 3), entry("a", "F32", {1}, 4)}, {});
  const std::string first = read_file(path_);
  write_safetensors(path_, std::vector{entry("a", "F32", {1}, 4), entry("b", "U8", {3}, 3)}, {});
  EXPECT_EQ(read_file(path_), first);
  const std::string header = R"({"a":{"data_offsets":[0,4],"dtype":"F32","shape":[1]},)"
                             R"("b":{"data_offsets":[4,7],"dtype":"U8","shape":[3]}})";
  EXPECT_EQ(first.substr(8, header.size()), header);
  EXPECT_EQ((first.size() - 7) % 8, 0u);  // the data starts at a multiple of 8
}

TEST_F(SafetensorsFileTest, AlignsEveryArrayToItsElements) {
  write_safetensors(path_, std::vector{entry("a", "U8", {3}, 3), entry("b", "F64", {1}, 8)}, {});
  const SafetensorsFile file(path_);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.find("b")->bytes.data()) % 8, 0u);
}

TEST_F(SafetensorsFileTest, LeavesTheOldFileWhenTheFolderIsMissing) {
  const fs::path path = folder_ / "missing" / "a.safetensors";
  try {
    write_safetensors(path, {}, {});
    FAIL() << "no error";
  } catch (const UserError& caught) {
    EXPECT_EQ(std::string(caught.what()),
              path.string() +
                  ": cannot be written (No such file or directory); choose an output "
                  "folder you may write to");
  }
}

TEST_F(SafetensorsFileTest, RejectsAFileThatIsNoSafetensorsFile) {
  write_file(path_, "GGUF");
  EXPECT_EQ(error(), "has 4 bytes, a safetensors file has at least 8");
  write_file(path_, "<!DOCTYPE html><html>");
  EXPECT_EQ(error(),
            "the first 8 bytes announce a header of 5789751444030890300 bytes, expected at most "
            "100000000: this is no safetensors file");
  write("[1, 2]", 0);
  EXPECT_EQ(error(), "the safetensors header is a JSON array, expected an object of tensors");
  write("{\"a\": ", 0);
  EXPECT_EQ(error(), "the safetensors header is not JSON, expected an object of tensors");
}

TEST_F(SafetensorsFileTest, RejectsATruncatedFile) {
  write_safetensors(path_, std::vector{entry("a", "F32", {2}, 8)}, {});
  const std::string whole = read_file(path_);
  write_file(path_, whole.substr(0, whole.size() - 3));
  EXPECT_EQ(error(), "tensor 'a' claims bytes 0 to 8, but the file's data has 5 bytes");
  write_file(path_, whole.substr(0, 30));
  EXPECT_EQ(error(),
            "the header should have 56 bytes, but only 22 follow: the file is cut short or no "
            "safetensors file");
}

TEST_F(SafetensorsFileTest, RejectsSizesThatContradictEachOther) {
  write(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(error(), "tensor 'a' claims 4 bytes, but F32 [2] needs 8");
  write(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4);
  EXPECT_EQ(error(), "tensor 'a' claims bytes 4 to 0, but the file's data has 4 bytes");
  write(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(error(), "tensor 'a' has more elements than fit in any file");
}

TEST_F(SafetensorsFileTest, RejectsOverlapsAndHoles) {
  write(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
        R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
        7);
  EXPECT_EQ(error(), "tensors 'a' and 'b' overlap, expected one behind the other");
  write(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
        R"("b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
        10);
  EXPECT_EQ(error(), "2 bytes before tensor 'b' belong to no tensor, expected none");
  write(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 9);
  EXPECT_EQ(error(), "5 bytes at the end belong to no tensor, expected none");
}

TEST_F(SafetensorsFileTest, RejectsARepeatedName) {
  write(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
        R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
        2);
  EXPECT_EQ(error(), "the safetensors header has the name 'a' twice, expected each once");
}

TEST_F(SafetensorsFileTest, QuotesANameWithAZeroByteWhole) {
  write(R"({"a\u0000b":{"dtype":"U\u0000","shape":[1],"data_offsets":[0,1]}})", 1);
  EXPECT_EQ(error(),
            "tensor 'a\\x00b' has dtype 'U\\x00', expected one of the format's, like F32 or BF16");
}

TEST_F(SafetensorsFileTest, RejectsAMalformedDescription) {
  const std::string expected =
      "tensor 'a' is not described as expected: a dtype, a shape and two data_offsets";
  for (const char* node :
       {R"(3)", R"({"dtype":"U8","shape":[1]})", R"({"dtype":8,"shape":[1],"data_offsets":[0,1]})",
        R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})",
        R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})",
        R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})",
        R"({"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615]})"}) {
    write(std::string(R"({"a":)") + node + "}", 1);
    EXPECT_EQ(error(), expected) << node;
  }
  write(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}})", 1);
  EXPECT_EQ(error(), "tensor 'a' has dtype 'Q4', expected one of the format's, like F32 or BF16");
}

TEST_F(SafetensorsFileTest, RejectsMetadataThatIsNoText) {
  write(R"({"__metadata__":{"step":3}})", 0);
  EXPECT_EQ(error(), "'__metadata__' holds a number under 'step', expected a text");
  write(R"({"__metadata__":[]})", 0);
  EXPECT_EQ(error(), "'__metadata__' is a JSON array, expected an object of texts");
}

}  // namespace
}  // namespace medusa
