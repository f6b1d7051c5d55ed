#include "tools/shortened_file.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

TEST(ShortenedFileDeathTest, EndsTheProgramAndIsNamed) {
  const fixtures::TempFolder folder;
  const auto path = folder.path() / "model.gguf";
  std::ofstream(path) << std::string(20000, 'x');
  EXPECT_EXIT(
      {
        report_shortened_files();
        const MappedFile file(path);
        std::filesystem::resize_file(path, 10);
        volatile uint8_t last = file.bytes()[19000];
        static_cast<void>(last);
      },
      testing::ExitedWithCode(2),
      "^medusa: /.*/model.gguf: the file became shorter, .* while it was read, expected it to stay "
      "as it is; bring it back, then run again\n$");
}

TEST(ShortenedFileDeathTest, AnotherCauseKillsAsBefore) {
  EXPECT_EXIT(
      {
        report_shortened_files();
        ::raise(SIGBUS);
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace medusa
