#include "train/joint/lora.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/backbone/tiny_model.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

LoraConfig config_of(std::vector<std::string> targets) {
  LoraConfig config;
  config.rank = 4;
  config.alpha = 8;
  config.dropout = 0;
  config.targets = std::move(targets);
  return config;
}

TEST(Lora, HasTwoThinMatricesForEachTarget) {
  const Weights model = tiny_weights(1);
  const LoraAdapters lora(config_of({"v_proj", "lm_head"}), model, 1);
  const auto named = lora.named_parameters();
  ASSERT_EQ(named.size(), 6U);
  EXPECT_EQ(named[0].first, "layers.0.v_proj.a");
  EXPECT_EQ(named[0].second.sizes(), (std::vector<int64_t>{4, 64}));
  EXPECT_EQ(named[1].second.sizes(), (std::vector<int64_t>{64, 4}));
  EXPECT_EQ(named[4].first, "lm_head.a");
  EXPECT_EQ(named[5].second.sizes(), (std::vector<int64_t>{130, 4}));
  EXPECT_EQ(lora.first_layer(), 0);
  EXPECT_EQ(LoraAdapters(config_of({"lm_head"}), model, 1).first_layer(), 2);
}

TEST(Lora, EachTargetChangesItsOwnRowsOfTheFusedMatrix) {
  const Weights model = tiny_weights(1);
  const c10::NoGradGuard no_grad;
  struct Case {
    const char* target;
    LayerMatrix matrix;
    int64_t begin, rows;
  };
  for (const Case& c :
       {Case{"q_proj", LayerMatrix::Qkv, 0, 128}, Case{"k_proj", LayerMatrix::Qkv, 128, 64},
        Case{"v_proj", LayerMatrix::Qkv, 192, 64}, Case{"o_proj", LayerMatrix::Output, 0, 64},
        Case{"gate_proj", LayerMatrix::GateUp, 0, 96}, Case{"up_proj", LayerMatrix::GateUp, 96, 96},
        Case{"down_proj", LayerMatrix::Down, 0, 64}}) {
    const LoraAdapters lora(config_of({c.target}), model, 1);
    for (const auto& [name, tensor] : lora.named_parameters())
      if (name.ends_with(".b")) at::Tensor(tensor).fill_(0.1);
    const at::Tensor& matrix = matrix_of(model.layers[1], c.matrix);
    const at::Tensor merged = lora.merged(matrix, 1, c.matrix);
    const at::Tensor changed = merged.ne(matrix).all(1);
    EXPECT_EQ(changed.sum().item<int64_t>(), c.rows) << c.target;
    EXPECT_TRUE(changed.narrow(0, c.begin, c.rows).all().item<bool>()) << c.target;
    // Beside the product it is the same as in the matrix.
    const at::Tensor x = at::linspace(-1, 1, 3 * matrix.size(1)).reshape({3, -1});
    EXPECT_TRUE(at::allclose(lora.add_to(at::linear(x, matrix), x, 1, c.matrix, std::nullopt),
                             at::linear(x, merged), 1e-4, 1e-5))
        << c.target;
  }
}

TEST(Lora, ATargetsStartDoesNotDependOnTheOthers) {
  const Weights model = tiny_weights(1);
  const auto alone = LoraAdapters(config_of({"up_proj"}), model, 1).named_parameters();
  const auto both = LoraAdapters(config_of({"q_proj", "up_proj"}), model, 1).named_parameters();
  EXPECT_EQ(both[2].first, "layers.0.up_proj.a");
  EXPECT_TRUE(at::equal(alone[0].second, both[2].second));
  EXPECT_FALSE(at::equal(alone[0].second, alone[2].second)) << "nor are two layers alike";
}

/// With all ones in both matrices a row of the adapter counts the inputs that are left.
TEST(Lora, DropoutLeavesOutItsShareAndMakesUpForIt) {
  const Weights model = tiny_weights(1);
  const c10::NoGradGuard no_grad;
  LoraConfig config = config_of({"o_proj"});  // which reads 128 numbers
  config.dropout = 0.25;
  const LoraAdapters lora(config, model, 1);
  for (const auto& [name, tensor] : lora.named_parameters()) at::Tensor(tensor).fill_(1);
  const at::Tensor x = at::ones({1, 128}), y = at::zeros({1, 64});
  const auto read = [&](const std::optional<Random>& dropout) {  // alpha is 8
    return lora.add_to(y, x, 0, LayerMatrix::Output, dropout)[0][0].item<double>() / 8;
  };
  EXPECT_NEAR(read(std::nullopt), 128, 1e-3);
  double sum = 0;
  for (uint64_t step = 0; step < 200; ++step) {
    const double kept = read(Random(1).child(step)) * 0.75;
    EXPECT_NEAR(kept, std::round(kept), 1e-3) << "an input is read whole or not at all";
    sum += kept;
  }
  EXPECT_NEAR(sum / 200, 96, 1.5);  // its standard deviation is 0.35
}

TEST(Lora, RefusesTargetsThatDoNotExist) {
  const fixtures::TempFolder folder;
  const auto error = [&](std::vector<std::string> targets) {
    return fixtures::error_text(folder, [&] { config_of(std::move(targets)).validate(); });
  };
  EXPECT_EQ(error({"q_proj", "w_proj"}),
            "train.joint.lora.targets: found 'w_proj', expected some of q_proj, k_proj, v_proj, "
            "o_proj, gate_proj, up_proj, down_proj, lm_head; correct the name");
  EXPECT_EQ(error({"q_proj", "q_proj"}),
            "train.joint.lora.targets: found 'q_proj' twice, expected it once; remove one");
  EXPECT_EQ(error({}),
            "train.joint.lora.targets: found no target, expected some of q_proj, k_proj, v_proj, "
            "o_proj, gate_proj, up_proj, down_proj, lm_head; name one or more");
  EXPECT_EQ(error({"down_proj", "lm_head"}), "(no error)");
}

}  // namespace
}  // namespace medusa
