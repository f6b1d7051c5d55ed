#include "train/train_config.h"

#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace medusa {
namespace {

TEST(TrainStages, RefusesWhatCannotWork) {
  using enum StageKind;
  const auto error = [](std::vector<StageKind> stages) {
    return fixtures::error_text([&] { check_stages(stages); });
  };
  EXPECT_EQ(error({Joint, Heads}),
            "train.stages is [joint, heads], found heads behind joint, expected it before: heads "
            "alone learn from the backbone as it was, not from what joint made of it; write "
            "[heads, joint]");
  EXPECT_EQ(error({Heads, Joint, Heads}),
            "train.stages is [heads, joint, heads], found heads twice, expected each stage once; "
            "remove one");
  EXPECT_EQ(error({}),
            "train.stages is [], found no stage, expected one or both of heads and joint; write "
            "[heads] or [heads, joint]");
  for (const auto& stages : {std::vector{Heads}, {Joint}, {Heads, Joint}})
    EXPECT_NO_THROW(check_stages(stages));
}

}  // namespace
}  // namespace medusa
