// The whole float32 backbone against transformers on trained models. The large one is in
// tests/slow.
#include "tests/backbone/golden_logits.h"

namespace medusa {
namespace {

/// The file's own blocks, with rows rounded to 8 bits: the same text but for close calls.
TEST(BlockLogits, StoredBlocksStayCloseToTransformers) {
  const GoldenNumbers golden = read_golden_logits("smollm2");
  const std::filesystem::path path = downloaded_model(golden);
  ASSERT_TRUE(stores_quantized(path));
  for (const Kernels kernels : {Kernels::Auto, Kernels::Reference}) {
    Llama model(load_weights(path, at::kBFloat16, at::kCPU, QuantKind::Stored), kernels);
    EXPECT_STREQ(model.dtype_name(), "stored");
    const at::Tensor logits = run_golden(golden, model), argmax = logits.argmax(-1);
    int64_t same = 0;
    double error = 0;
    for (size_t i = 0; i < golden.tokens.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      same += argmax[row].item<int64_t>() == golden.argmax[i] ? 1 : 0;
      error += std::abs(logits[row][golden.largest_ids[i][0]].item<double>() -
                        golden.largest_logits[i][0]);
    }
    const auto count = static_cast<int64_t>(golden.tokens.size());
    EXPECT_GE(same, count * 96 / 100) << model.kernels();
    EXPECT_LT(error / static_cast<double>(count), 0.25) << model.kernels();
  }
}

TEST(GoldenLogits, Float32AgreesWithTransformersAtEveryPositionOfTheDemosModel) {
  const GoldenNumbers golden = read_golden_logits("smollm2");
  expect_golden_model(golden, downloaded_model(golden));
}

TEST(GoldenLogits, Float32AgreesWithTransformersAtEveryPositionOfTheTinyModel) {
  const GoldenNumbers golden = read_golden_logits("tiny_model");
  expect_golden_model(golden,
                      std::filesystem::path(MEDUSA_SOURCE_DIR) / "tests/golden" / golden.model);
}

}  // namespace
}  // namespace medusa
