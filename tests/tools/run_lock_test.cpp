#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/temp_folder.h"
#include "tools/run/output_check.h"

namespace medusa {
namespace {

// Where the file system cannot swap two names, a kill between the two renames leaves none of them.
TEST(RunLock, EndsEveryReplacementThatAKillInterrupted) {
  const fixtures::TempFolder folder;
  RunConfig config;
  config.run = (folder / "run").string();
  const auto folders = {config.dataset_folder(), config.heads_folder(), config.joint_model_folder(),
                        config.joint_heads_folder(), config.made_draft_folder()};
  for (const auto& each : folders) {
    const std::filesystem::path old = each.string() + ".partial-old";
    make_folder(old);
    write_file(old / "of", each.string());
  }
  const FolderLock lock = lock_run(config, "medusa train");
  for (const auto& each : folders) {
    EXPECT_EQ(read_file(each / "of"), each.string());
    EXPECT_FALSE(std::filesystem::exists(each.string() + ".partial-old"));
  }
}

}  // namespace
}  // namespace medusa
