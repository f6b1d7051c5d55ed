#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"
#include "tools/measure/resources.h"

namespace medusa {
namespace {

TEST(FreeRoom, BytesAreShownInPowersOfTen) {
  EXPECT_EQ(bytes_text(0), "0 MB");
  EXPECT_EQ(bytes_text(640'000'000), "640 MB");
  EXPECT_EQ(bytes_text(1'240'000'000), "1.2 GB");
}

TEST(FreeRoom, AFolderThatIsNotThereYetHasThatOfItsParent) {
  const fixtures::TempFolder folder;
  const int64_t here = free_disk(folder.path()).value(),
                later = free_disk(folder / "a/b/c").value();
  EXPECT_GT(here, 0);
  EXPECT_LT(std::abs(here - later), here / 2);  // others write meanwhile
  EXPECT_GT(available_memory(), 0);
}

}  // namespace
}  // namespace medusa
