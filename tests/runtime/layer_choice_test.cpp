#include "runtime/layer_choice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
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

TEST(LayerChoice, ConvertsNoNumber) {
  const fixtures::TempFolder folder;
  const auto file = folder / "layers.json";
  const auto error_with = [&](const std::string& skip, const std::string& num_draft) {
    write_file(file, fmt::format(R"({{"format": "medusa-layers", "version": 1, "backbone": "",
        "skip": {}, "agreement": 1, "cost_of_a_drafted_token": 1, "num_draft": {},
        "expected_speedup": 1}})",
                                 skip, num_draft));
    return fixtures::error_text(folder, [&] { read_layer_choice(file); });
  };
  const std::string advice = "; correct it or download the file again";
  EXPECT_EQ(error_with("[2, 5]", "3"), "(no error)");
  EXPECT_EQ(error_with("[1.99]", "3"),
            "<>/layers.json: 'skip' is [1.99], expected a list of integers" + advice);
  EXPECT_EQ(error_with("[true]", "3"),
            "<>/layers.json: 'skip' is [true], expected a list of integers" + advice);
  EXPECT_EQ(
      error_with("[18446744073709551615]", "3"),
      "<>/layers.json: 'skip' is [18446744073709551615], expected a list of integers" + advice);
  EXPECT_EQ(error_with("[2]", "4294967297"),
            "<>/layers.json: 'num_draft' is 4294967297, expected an integer of 32 bits" + advice);
}

}  // namespace
}  // namespace medusa
