#include "tools/layer_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

TEST(LayerSearch, TheGainIsThatOfTheBestChain) {
  const StepCost flat;  // rows cost nothing
  const LayerChoice free = expected_gain(0.5, 1e-9, flat);
  EXPECT_NEAR(free.speedup, 2, 1e-3) << "1 + 1/2 + 1/4 + …";
  const LayerChoice two = expected_gain(0.8, 0.3, flat);
  double best = 0;
  int32_t best_n = 0;
  for (int32_t n = 1; n <= 16; ++n) {
    const double gain = (1 - std::pow(0.8, n + 1)) / (1 - 0.8) / (n * 0.3 + 1);
    if (gain > best) best_n = n;
    best = std::max(best, gain);
  }
  EXPECT_NEAR(two.speedup, best, 1e-12);
  EXPECT_EQ(two.num_draft, best_n);
  EXPECT_LT(expected_gain(0.2, 0.9, flat).speedup, 1) << "a draft that is dear and wrong";
}

TEST(LayerSearch, AChoiceComesBackAsItWasWritten) {
  const fixtures::TempFolder folder;
  const auto file = folder / "layers.json";
  write_layer_choice(file, {"sha256:1", {2, 5, 7}, 0.75, 0.5, 3, 1.125});
  const LayerChoice back = read_layer_choice(file, "sha256:1");
  EXPECT_EQ(back.skip, (std::vector<int64_t>{2, 5, 7}));
  EXPECT_EQ(back.agreement, 0.75);
  EXPECT_EQ(back.cost, 0.5);
  EXPECT_EQ(back.num_draft, 3);
  EXPECT_EQ(back.speedup, 1.125);
  EXPECT_EQ(
      fixtures::error_text([&] { read_layer_choice(file, "sha256:2"); }),
      file.string() +
          ": was measured on model sha256:1, the model given is sha256:2; run medusa calibrate "
          "--layers again");
}

}  // namespace
}  // namespace medusa
