#include "base/stderr_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace medusa {
namespace {

TEST(FormatDuration, ShowsTwoUnitsAtMost) {
  EXPECT_EQ(format_duration(0), "0.0s");
  EXPECT_EQ(format_duration(12.34), "12.3s");
  EXPECT_EQ(format_duration(59.9), "59.9s");
  EXPECT_EQ(format_duration(59.97), "1m00s");
  EXPECT_EQ(format_duration(245), "4m05s");
  EXPECT_EQ(format_duration(3599.6), "1h00m");
  EXPECT_EQ(format_duration(3725), "1h02m");
  EXPECT_EQ(format_duration(90000), "25h00m");
}

/// What the lines of one stage look like where stderr is not a terminal, as under a test runner.
std::string lines_of(const std::function<void(Progress&)>& stage, int64_t total) {
  testing::internal::CaptureStderr();
  {
    Progress progress(stderr_progress(), "train", "steps", total);
    stage(progress);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(StderrProgress, EndsWithOneLineThatSaysWhatWasDone) {
  const std::string text = lines_of(
      [](Progress& p) {
        p.update(3);
        p.finish("loss 2.5");
        p.finish("again");
      },
      8);
  EXPECT_EQ(text.rfind("train  3/8 steps  37%", 0), 0U) << text;
  EXPECT_NE(text.find("train  3 steps in 0.0s  loss 2.5\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("again"), std::string::npos) << text;
}

TEST(StderrProgress, PlainLinesComeAtMostEveryTenSeconds) {
  const std::string text = lines_of(
      [](Progress& p) {
        for (int64_t i = 1; i <= 1000; ++i) p.update(i);
      },
      1000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST(StderrProgress, ShowsTheControlCharactersOfNames) {
  testing::internal::CaptureStderr();
  {
    Progress progress(stderr_progress(), "read \x1b]0;name\a", "steps", 0);
    progress.update(3, "\x1b[2J");
    progress.finish("\xC2\x9B");
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("read \\x1b]0;name\\x07  3 steps  \\x1b[2J\n", 0), 0U) << text;
  EXPECT_NE(text.find("\\u009b\n"), std::string::npos) << text;
}

TEST(StderrProgress, WithoutATotalThereIsNoShare) {
  const std::string text = lines_of([](Progress& p) { p.update(3); }, 0);
  EXPECT_EQ(text.rfind("train  3 steps", 0), 0u) << text;
  EXPECT_EQ(text.find('%'), std::string::npos) << text;
  EXPECT_EQ(text.find("ETA"), std::string::npos) << text;
}

}  // namespace
}  // namespace medusa
