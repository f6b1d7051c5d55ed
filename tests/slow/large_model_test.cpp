// The float32 backbone against transformers on a model of 1.5 billion parameters: 7 GB of memory,
// and 1.1 GB that tools/get_demo_model.sh qwen-coder-1.5b gets.
#include "tests/backbone/golden_logits.h"

namespace medusa {
namespace {

TEST(LargeModel, Float32AgreesWithTransformersAtEveryPosition) {
  const GoldenNumbers golden = read_golden_logits("qwen2.5_coder");
  expect_golden_model(golden, downloaded_model(golden, " qwen-coder-1.5b"));
}

}  // namespace
}  // namespace medusa
