#include "runtime/layer_choice.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

TEST(LayerChoice, ComesBackAsItWasWritten) {
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
