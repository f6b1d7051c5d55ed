#include "runtime/checked_gpu.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

class RememberedCheckTest : public testing::Test {
 protected:
  /// @returns  whether a check had to be made.
  bool asks(const std::string& key, const DeviceCheck& answer) {
    bool asked = false;
    last_ = remembered_check(file_, key, [&] {
      asked = true;
      return answer;
    });
    return asked;
  }

  fixtures::TempFolder folder_;
  std::filesystem::path file_ = folder_ / "cache/medusa/gpu-0.json";
  DeviceCheck last_;
};

TEST_F(RememberedCheckTest, IsMadeOnceForAKey) {
  EXPECT_TRUE(asks("driver 1", {true, ""}));
  EXPECT_FALSE(asks("driver 1", {false, "not asked"}));
  EXPECT_TRUE(last_.passed);
  EXPECT_TRUE(asks("driver 2", {false, "logits differ"}));
  EXPECT_FALSE(asks("driver 2", {true, ""}));
  EXPECT_FALSE(last_.passed);
  EXPECT_EQ(last_.finding, "logits differ");
}

TEST_F(RememberedCheckTest, IsMadeEachTimeWhereNothingNamesTheDriver) {
  EXPECT_TRUE(asks("", {true, ""}));
  EXPECT_TRUE(asks("", {true, ""}));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(RememberedCheckTest, IsMadeAgainWhereTheFileIsDamaged) {
  for (const char* text : {"", "{", "[1]", R"({"key": 3, "finding": ""})", R"({"key": "driver"})",
                           R"({"key": "driver", "finding": 7})", "\xff\xfe"}) {
    make_folder(file_.parent_path());
    write_file(file_, text);
    EXPECT_TRUE(asks("driver", {true, ""})) << text;
    EXPECT_FALSE(asks("driver", {true, ""})) << text;
  }
}

TEST_F(RememberedCheckTest, NeedsNoPlaceToKeepIt) {
  make_folder(folder_ / "cache");
  write_file(folder_ / "cache/medusa", "a file where the folder belongs");
  EXPECT_TRUE(asks("driver", {true, ""}));
  EXPECT_TRUE(asks("driver", {true, ""}));
  EXPECT_TRUE(last_.passed);
}

}  // namespace
}  // namespace medusa
