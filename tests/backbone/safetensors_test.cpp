#include "backbone/files/safetensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "backbone/files/tensor_check.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

TEST(Safetensors, WrittenTensorsReadBackEqual) {
  const fixtures::TempFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::map<std::string, at::Tensor> tensors{
      {"float", at::arange(6, at::kFloat).view({2, 3}).t()},  // not contiguous
      {"bfloat16", at::arange(3, at::kBFloat16)},
      {"long", at::arange(4, at::kLong)},
      {"byte", at::ones({3}, at::kByte)},
      {"single", at::full({}, 2.5, at::kDouble)},
      {"empty", at::empty({0, 4}, at::kFloat)}};
  write_tensors(path, tensors, {{"step", "7"}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("step"), "7");
  EXPECT_EQ(file.entries().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor read = read_tensor(file, name, tensor.scalar_type(), tensor.sizes());
    EXPECT_TRUE(at::equal(read, tensor)) << name;
    EXPECT_EQ(read.scalar_type(), tensor.scalar_type()) << name;
  }
}

TEST(Safetensors, ConvertsBetweenFloatingTypesOnly) {
  const fixtures::TempFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_tensors(path, {{"x", at::full({2}, 1.00390625f)}, {"ids", at::arange(2, at::kLong)}}, {});
  const SafetensorsFile file(path);
  const at::Tensor half = read_tensor(file, "x", at::kBFloat16);
  EXPECT_EQ(half.scalar_type(), at::kBFloat16);
  EXPECT_EQ(half[0].item<float>(), 1.0f);  // a tie, rounded to even
  EXPECT_EQ(fixtures::error_text(folder, [&] { read_tensor(file, "ids", at::kFloat); }),
            "<>/a.safetensors: tensor 'ids' is I64, expected F32; choose the file that was written "
            "for this");
}

TEST(Safetensors, NamesWhatIsMissingOrOfAnotherShape) {
  const fixtures::TempFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_tensors(path, {{"x", at::zeros({2, 3})}}, {});
  const SafetensorsFile file(path);
  EXPECT_EQ(fixtures::error_text(folder, [&] { read_tensor(file, "y", at::kFloat); }),
            "<>/a.safetensors: has no tensor 'y', expected it among the 1 there; choose the file "
            "that was written for this");
  EXPECT_EQ(fixtures::error_text(folder,
                                 [&] {
                                   read_tensor(file, "x", at::kFloat, {3, 2});
                                 }),
            "<>/a.safetensors: tensor 'x' has shape [2, 3], expected [3, 2]; choose the file that "
            "was written for this");
}

TEST(TensorCheck, ShowsBothShapes) {
  const at::Tensor x = at::zeros({2, 3});
  check_shape(x, "hidden", {2, -1});
  try {
    check_shape(x, "hidden", {-1, 4});
    FAIL() << "no error";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("hidden is [2, 3], expected [any, 4]"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace medusa
