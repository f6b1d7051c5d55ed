#include "tools/run/checked_gpu.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

class RememberedCheckTest : public testing::Test {
 protected:
  /// @returns  whether a check had to be made.
  bool asks(const std::string& key, const std::string& answer) {
    bool asked = false;
    last_ = remembered_check(file_, key, [&] {
      asked = true;
      return answer;
    });
    return asked;
  }

  fixtures::TempFolder folder_;
  std::filesystem::path file_ = folder_ / "cache/medusa/gpu-0.json";
  std::string last_;
};

TEST_F(RememberedCheckTest, IsMadeOnceForAKey) {
  EXPECT_TRUE(asks("driver 1", ""));
  EXPECT_FALSE(asks("driver 1", "not asked"));
  EXPECT_EQ(last_, "");
  EXPECT_TRUE(asks("driver 2", "logits differ"));
  EXPECT_FALSE(asks("driver 2", ""));
  EXPECT_EQ(last_, "logits differ");
}

TEST_F(RememberedCheckTest, IsMadeEachTimeWhereNothingNamesTheDriver) {
  EXPECT_TRUE(asks("", ""));
  EXPECT_TRUE(asks("", ""));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(RememberedCheckTest, IsMadeAgainWhereTheFileIsDamaged) {
  for (const char* text : {"", "{", "[1]", R"({"key": 3, "finding": ""})", R"({"key": "driver"})",
                           R"({"key": "driver", "finding": 7})", "\xff\xfe"}) {
    make_folder(file_.parent_path());
    write_file(file_, text);
    EXPECT_TRUE(asks("driver", "")) << text;
    EXPECT_FALSE(asks("driver", "")) << text;
  }
}

TEST_F(RememberedCheckTest, NeedsNoPlaceToKeepIt) {
  make_folder(folder_ / "cache");
  write_file(folder_ / "cache/medusa", "a file where the folder belongs");
  EXPECT_TRUE(asks("driver", ""));
  EXPECT_TRUE(asks("driver", ""));
  EXPECT_EQ(last_, "");
}

}  // namespace
}  // namespace medusa
