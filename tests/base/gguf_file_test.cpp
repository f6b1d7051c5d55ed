#include "base/formats/gguf_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/base/error_text.h"
#include "tests/base/gguf_builder.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::GgufBuilder;
using fixtures::TempFolder;

GgufBuilder small_file() {
  GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .u32("llama.block_count", 5)
      .f32("llama.rope.freq_base", 10000.0F)
      .boolean("tokenizer.ggml.add_bos_token", true)
      .strings("tokenizer.ggml.tokens", {"a", "", "bc"})
      .i32s("tokenizer.ggml.token_type", {1, 3, -1})
      .f32s("tokenizer.ggml.scores", {0.5F, -1.0F})
      .tensor("norm.weight", {3}, {1.0F, 2.0F, 3.0F})
      .tensor("embed.weight", {32, 2}, GgmlType::Q4_1, std::string(40, '\x11'));
  return builder;
}

/// The error of a file of these bytes, without its path.
std::string gguf_error(const std::string& bytes) {
  const TempFolder folder;
  write_file(folder / "m.gguf", bytes);
  const auto text = error_text([&] { GgufFile(folder / "m.gguf"); });
  const auto start = (folder / "m.gguf").string() + ": ";
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

std::string gguf_error(const GgufBuilder& builder) { return gguf_error(builder.bytes()); }

constexpr const char* kGgufRemedy =
    "; expected a whole, consistent GGUF file: copy, convert or download it again";

TEST(GgufFile, ReadsBackWhatWasWritten) {
  for (const uint32_t version : {2U, 3U}) {
    const TempFolder folder;
    auto bytes = small_file().bytes();
    bytes[4] = static_cast<char>(version);
    write_file(folder / "m.gguf", bytes);
    const GgufFile file(folder / "m.gguf");

    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(file.required<std::string>("general.architecture"), "llama");
    EXPECT_EQ(file.required<int64_t>("llama.block_count"), 5);
    EXPECT_EQ(file.required<double>("llama.rope.freq_base"), 10000.0);
    EXPECT_EQ(file.required<double>("llama.block_count"), 5.0);
    EXPECT_TRUE(file.required<bool>("tokenizer.ggml.add_bos_token"));
    EXPECT_EQ(file.required<std::vector<std::string>>("tokenizer.ggml.tokens"),
              (std::vector<std::string>{"a", "", "bc"}));
    EXPECT_EQ(file.required<std::vector<int64_t>>("tokenizer.ggml.token_type"),
              (std::vector<int64_t>{1, 3, -1}));
    EXPECT_EQ(file.required<std::vector<double>>("tokenizer.ggml.scores"),
              (std::vector<double>{0.5, -1.0}));
    EXPECT_EQ(file.find<int64_t>("llama.vocab_size"), std::nullopt);
    EXPECT_FALSE(file.has("llama.vocab_size"));

    const auto& norm = file.required_tensor("norm.weight");
    EXPECT_EQ(norm.dims, std::vector<int64_t>{3});
    float values[3];
    std::memcpy(values, file.data(norm).data(), sizeof values);
    EXPECT_EQ(values[2], 3.0F);
    const auto& embed = file.required_tensor("embed.weight");
    EXPECT_EQ(embed.type, GgmlType::Q4_1);
    EXPECT_EQ(embed.num_elements(), 64);
    EXPECT_EQ(file.data(embed).size(), 40U);
    EXPECT_EQ(file.data(embed)[39], 0x11);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file.data(embed).data()) % 32, 0U);
    EXPECT_EQ(file.find_tensor("output.weight"), nullptr);
  }
}

TEST(GgufFile, HonorsTheAlignmentThatTheFileStates) {
  const TempFolder folder;
  GgufBuilder builder;
  builder.alignment(64).tensor("a", {1}, {1.0F}).tensor("b", {1}, {2.0F});
  const GgufFile file(builder.write(folder / "m.gguf"));
  float value = 0;
  std::memcpy(&value, file.data(file.required_tensor("b")).data(), sizeof value);
  EXPECT_EQ(value, 2.0F);
  EXPECT_EQ(file.required_tensor("b").offset % 64, 0);

  EXPECT_EQ(
      gguf_error(GgufBuilder().u32("general.alignment", 24)),
      std::string("general.alignment is 24, not a power of two from 8 to 65536") + kGgufRemedy);
}

TEST(GgufFile, DescribesValuesForPeople) {
  const TempFolder folder;
  GgufBuilder builder;
  builder.u32("n", 7)
      .boolean("b", false)
      .text("t", "llama")
      .strings("s", {"x", "y"})
      .f32("f", 1.5F);
  builder.text("long", std::string(59, 'x') + "é and more");
  const GgufFile file(builder.write(folder / "m.gguf"));
  std::vector<std::string> texts;
  for (const auto& entry : file.entries()) texts.push_back(describe(entry));
  EXPECT_EQ(texts, (std::vector<std::string>{"7", "false", "\"llama\"", "[2 x string]", "1.5",
                                             fmt::format("\"{:x<59}…\" (70 bytes)", "")}));
}

TEST(GgufFile, NamesTheFileAndTheKeyThatIsMissingOrMistyped) {
  const TempFolder folder;
  const auto path = folder / "m.gguf";
  const GgufFile file(small_file().u64("huge", ~uint64_t{0}).write(path));
  EXPECT_EQ(error_text([&] { file.required<int64_t>("llama.context_length"); }),
            path.string() +
                ": has no metadata key 'llama.context_length', which is needed; convert the model "
                "again with a converter that writes it, or use another file");
  EXPECT_EQ(error_text([&] { file.required<int64_t>("general.architecture"); }),
            path.string() +
                ": the metadata key 'general.architecture' is \"llama\", expected an integer; "
                "convert or download the model again");
  EXPECT_EQ(error_text([&] { file.find<std::vector<std::string>>("tokenizer.ggml.scores"); }),
            path.string() +
                ": the metadata key 'tokenizer.ggml.scores' is [2 x f32], expected an array of "
                "strings; convert or download the model again");
  EXPECT_EQ(error_text([&] { file.required<int64_t>("huge"); }),
            path.string() +
                ": the metadata key 'huge' is 18446744073709551615, expected an integer; "
                "convert or download the model again");
  EXPECT_EQ(error_text([&] { file.required_tensor("output.weight"); }),
            path.string() +
                ": has no tensor 'output.weight', which is needed; use a GGUF file of the whole "
                "model, of an architecture that this program runs");
}

TEST(GgufFile, SaysWhatAForeignFileIs) {
  const std::string rest = ", expected a GGUF file; give the model's .gguf file";
  using namespace std::string_literals;
  EXPECT_EQ(gguf_error("\x02\0\0\0\0\0\0\0{} and data"s), "is a safetensors file" + rest);
  EXPECT_EQ(gguf_error("backbone:\n  model: x\n"s), "is a text file" + rest);
  EXPECT_EQ(gguf_error("PK\x03\x04____"s), "is a zip archive or a PyTorch checkpoint" + rest);
  EXPECT_EQ(gguf_error("\x89HDF\r\n\x1a\n"s), "is an HDF5 file" + rest);
  EXPECT_EQ(gguf_error("version https://git-lfs.github.com/spec/v1\n"s),
            "is a Git LFS pointer to the real file" + rest);
  EXPECT_EQ(gguf_error("\xFF\xFE\0\0"s), "does not start with the letters GGUF" + rest);
  EXPECT_EQ(gguf_error("GG"s), "is a text file" + rest);
}

TEST(GgufFile, RefusesAMissingAnEmptyAndAnOldFile) {
  const TempFolder folder;
  EXPECT_EQ(error_text([&] { GgufFile(folder / "none.gguf"); }),
            (folder / "none.gguf").string() + ": no such file; check the path");
  EXPECT_EQ(gguf_error(""), "the file is empty; copy or download it again");
  EXPECT_EQ(gguf_error(GgufBuilder(1)),
            "is a GGUF file of version 1, expected 2 or 3 (little endian); convert it again");
}

TEST(GgufFile, RefusesEveryTruncation) {
  const TempFolder folder;
  const auto bytes = small_file().bytes();
  EXPECT_EQ(gguf_error(bytes), "(no error)");
  for (size_t size = 5; size < bytes.size(); ++size)
    EXPECT_NE(gguf_error(bytes.substr(0, size)), "(no error)") << size;
  EXPECT_EQ(gguf_error(bytes.substr(0, bytes.size() - 1)),
            "ends inside the tensor 'embed.weight' (the file has " +
                std::to_string(bytes.size() - 1) + " bytes)" + kGgufRemedy);
  EXPECT_EQ(gguf_error(bytes.substr(0, 6)),
            std::string("ends inside the header (the file has 6 bytes)") + kGgufRemedy);
}

TEST(GgufFile, RefusesCountsThatTheFileCannotHold) {
  std::string header = "GGUF";
  GgufBuilder::number(header, uint32_t{3});
  std::string many_tensors = header;
  GgufBuilder::number(many_tensors, uint64_t{1} << 60);
  GgufBuilder::number(many_tensors, uint64_t{0});
  EXPECT_EQ(gguf_error(many_tensors),
            std::string("says that it has 1152921504606846976 tensors, but only 8 bytes follow") +
                kGgufRemedy);

  std::string huge_array = header;
  GgufBuilder::number(huge_array, uint64_t{0});
  GgufBuilder::number(huge_array, uint64_t{1});
  GgufBuilder::string(huge_array, "k");
  GgufBuilder::number(huge_array, static_cast<uint32_t>(GgufValueType::Array));
  GgufBuilder::number(huge_array, static_cast<uint32_t>(GgufValueType::F64));
  GgufBuilder::number(huge_array, uint64_t{1} << 61);  // times 8 bytes wraps to zero
  EXPECT_EQ(gguf_error(huge_array),
            std::string("says that it has 2305843009213693952 elements in the value of the "
                        "metadata key 'k', but only 0 bytes follow") +
                kGgufRemedy);
}

TEST(GgufFile, RefusesTypesItDoesNotKnow) {
  auto nested = GgufBuilder().strings("k", {"x"}).bytes();
  nested[4 + 4 + 16 + 9 + 4] = 9;  // the type of the elements
  EXPECT_EQ(gguf_error(nested),
            std::string("the value of the metadata key 'k' is of type array of array, which GGUF "
                        "files do not hold") +
                kGgufRemedy);
  auto unknown = GgufBuilder().u32("k", 1).bytes();
  unknown[4 + 4 + 16 + 9] = 13;
  EXPECT_EQ(gguf_error(unknown),
            std::string("the value of the metadata key 'k' is of type 13, which GGUF files do not "
                        "hold") +
                kGgufRemedy);
  EXPECT_EQ(
      gguf_error(GgufBuilder().tensor("t", {4}, static_cast<GgmlType>(77), "")),
      std::string("the tensor 't' is of type 77, which this program does not know") + kGgufRemedy);
}

TEST(GgufFile, RefusesTensorsThatDoNotFit) {
  EXPECT_EQ(
      gguf_error(GgufBuilder().tensor("t", {33, 2}, GgmlType::Q8_0, std::string(68, 'x'))),
      std::string("the tensor 't' has 33 columns, Q8_0 needs a multiple of 32") + kGgufRemedy);
  EXPECT_EQ(gguf_error(GgufBuilder().tensor("t", {4, 0}, GgmlType::F32, "")),
            std::string("the tensor 't' has the dimension 0") + kGgufRemedy);
  EXPECT_EQ(gguf_error(
                GgufBuilder().tensor("t", {int64_t{1} << 40, int64_t{1} << 40}, GgmlType::F32, "")),
            std::string("the tensor 't' has the dimension 1099511627776") + kGgufRemedy);
  EXPECT_EQ(gguf_error(GgufBuilder().tensor("t", {1, 1, 1, 1, 1}, {1.0F})),
            std::string("the tensor 't' has 5 dimensions") + kGgufRemedy);
  EXPECT_EQ(gguf_error(GgufBuilder()
                           .tensor("a", {16}, GgmlType::F32, std::string(8, 'x'))
                           .tensor("b", {24}, GgmlType::F32, std::string(96, 'x'))),
            std::string("the tensors 'a' and 'b' overlap") + kGgufRemedy);

  auto shifted = GgufBuilder().tensor("t", {1}, {1.0F}).bytes();
  const size_t offset = 4 + 4 + 16 + (8 + 1) + 4 + 8 + 4;
  shifted[offset] = 8;
  EXPECT_EQ(gguf_error(shifted),
            std::string("the tensor 't' is at offset 8, not a multiple of 32") + kGgufRemedy);
}

TEST(GgufFile, RefusesRepeatedNames) {
  EXPECT_EQ(gguf_error(GgufBuilder().u32("k", 1).u32("k", 2)),
            "the metadata key 'k' is there twice, expected once; the file is damaged, convert or "
            "download it again");
  EXPECT_EQ(gguf_error(GgufBuilder().tensor("t", {1}, {1.0F}).tensor("t", {1}, {1.0F})),
            "the tensor 't' is there twice, expected once; the file is damaged, convert or "
            "download it again");
}

TEST(GgufFile, QuotesANameWithAZeroByteWhole) {
  const std::string zero("a\0b", 3);
  EXPECT_EQ(
      gguf_error(GgufBuilder().u32(zero, 1).u32(zero, 2)),
      "the metadata key 'a\\x00b' is there twice, expected once; the file is damaged, convert "
      "or download it again");
}

TEST(GgufFile, SurvivesAnyChangedByte) {
  const auto bytes = small_file().bytes();
  std::mt19937 random(7);
  const TempFolder folder;
  for (int i = 0; i < 1500; ++i) {
    auto changed = bytes;
    for (int j = 0; j < 3; ++j) changed[random() % changed.size()] = static_cast<char>(random());
    write_file(folder / "m.gguf", changed);
    try {
      const GgufFile file(folder / "m.gguf");
      int64_t total = 0;
      for (const auto& tensor : file.tensors())
        for (const uint8_t byte : file.data(tensor)) total += byte;
      for (const auto& entry : file.entries())
        total += static_cast<int64_t>(describe(entry).size());
      EXPECT_GE(total, 0);
    } catch (const UserError&) {  // told, not crashed
    }
  }
}

TEST(GgufFile, ReadsARealModel) {
  const GgufFile file(MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf");  // by the package gguf
  EXPECT_EQ(file.required<std::string>("general.architecture"), "llama");
  EXPECT_EQ(file.required_tensor("token_embd.weight").dims, (std::vector<int64_t>{64, 512}));
}

/// small_file() in two parts, with what llama.cpp's splitter writes into them.
struct SplitModel {
  GgufBuilder parts[2] = {small_file(), GgufBuilder()};

  SplitModel() {
    parts[0].drop("embed.weight");
    parts[1].tensor("embed.weight", {32, 2}, GgmlType::Q4_1, std::string(40, '\x11'));
    for (uint32_t i = 0; i < 2; ++i)
      parts[i].set("split.no", i).set("split.count", 2U).set("split.tensors.count", 2U);
  }
  /// What opening it says, with the folder written as <>.
  std::string error(const char* first = "m-00001-of-00002.gguf",
                    const char* second = "m-00002-of-00002.gguf", int opened = 0) const {
    const TempFolder folder;
    parts[0].write(folder / first);
    if (second != nullptr) parts[1].write(folder / second);
    return error_text(folder, [&] { GgufFile(folder / (opened == 0 ? first : second)); });
  }
};

TEST(GgufFile, OpensAllPartsOfASplitModelByTheFirst) {
  const TempFolder folder;
  const SplitModel model;
  model.parts[0].write(folder / "m-00001-of-00002.gguf");
  model.parts[1].write(folder / "m-00002-of-00002.gguf");
  const GgufFile file(folder / "m-00001-of-00002.gguf");
  EXPECT_EQ(file.parts(),
            (std::vector{folder / "m-00001-of-00002.gguf", folder / "m-00002-of-00002.gguf"}));
  EXPECT_EQ(file.path(), folder / "m-00001-of-00002.gguf");
  EXPECT_EQ(file.required<int64_t>("llama.block_count"), 5);
  ASSERT_EQ(file.tensors().size(), 2U);
  const GgufTensor& other = file.required_tensor("embed.weight");
  EXPECT_EQ(other.part, 1U);
  EXPECT_EQ(file.data(other)[39], 0x11);
  float second = 0;
  std::memcpy(&second, file.data(file.required_tensor("norm.weight")).data() + 4, 4);
  EXPECT_EQ(second, 2.0F);
}

TEST(GgufFile, RefusesASplitModelThatIsNotWhole) {
  EXPECT_EQ(SplitModel().error("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", 1),
            "<>/m-00002-of-00002.gguf: is part 2 of a model in 2 files, expected the first, which "
            "has its settings; give the file whose name ends in '-00001-of-00002.gguf'");
  EXPECT_EQ(SplitModel().error("m.gguf"),
            "<>/m.gguf: is the first of 2 parts, expected a name that ends in "
            "'-00001-of-00002.gguf', by which the others are found; name all parts as they were "
            "published");
  EXPECT_EQ(SplitModel().error("m-00001-of-00002.gguf", nullptr),
            "<>/m-00002-of-00002.gguf: no such file, expected part 2 of 2 beside the first; "
            "download all parts into one folder");
  SplitModel model;
  model.parts[1].set("split.count", 3U);
  EXPECT_EQ(model.error(),
            "<>/m-00002-of-00002.gguf: says that it is part 2 of 3, expected part 2 of 2; download "
            "all parts again");
  model = {};
  model.parts[1].set("split.no", 0U);
  EXPECT_EQ(model.error(),
            "<>/m-00002-of-00002.gguf: says that it is part 1 of 2, expected part 2 of 2; download "
            "all parts again");
  model = {};
  model.parts[0].set("split.tensors.count", 3U);
  EXPECT_EQ(model.error(),
            "<>/m-00001-of-00002.gguf: its 2 parts hold 2 tensors, expected 3 as it says; download "
            "all parts again");
  model = {};
  model.parts[0].set("split.count", 1000000U);
  EXPECT_EQ(model.error(),
            "<>/m-00001-of-00002.gguf: says that it is part 1 of 1000000, expected one of 1 to "
            "99999 parts; download the model again");
  model = {};
  model.parts[0].set("split.count", "two");
  EXPECT_EQ(model.error(),
            "<>/m-00001-of-00002.gguf: the metadata key 'split.count' is \"two\", expected an "
            "integer; download the model again");
  model = {};
  model.parts[0].set("split.tensors.count", 3U);
  model.parts[1].tensor("norm.weight", {3}, {1.0F, 2.0F, 3.0F});
  EXPECT_EQ(model.error(),
            "<>/m-00001-of-00002.gguf: the tensor 'norm.weight' is there twice, expected once; the "
            "file is damaged, convert or download it again");
}

}  // namespace
}  // namespace medusa
