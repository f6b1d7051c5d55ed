#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "base/error.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::TempFolder;
namespace fs = std::filesystem;

size_t count_files(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(File, ReadsWhatWasWritten) {
  const TempFolder folder;
  const std::string bytes("a\0b\n\xff", 5);
  write_file(folder / "a", bytes);
  EXPECT_EQ(read_file(folder / "a"), bytes);
  const MappedFile mapped(folder / "a");
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), mapped.bytes().begin(),
                         [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
  EXPECT_EQ(mapped.bytes().size(), 5u);
}

TEST(File, AFailedReplacementKeepsTheOldFileAndLeavesNothing) {
  const TempFolder folder;
  write_file(folder / "a", "old");
  EXPECT_THROW(replace_file(folder / "a",
                            [](const fs::path& temporary) {
                              std::ofstream(temporary) << "half of the n";
                              throw std::runtime_error("broken off");
                            }),
               std::runtime_error);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(count_files(folder.path()), 1u);
}

TEST(File, TheNewFileIsNotSeenBeforeItIsWhole) {
  const TempFolder folder;
  write_file(folder / "a", "old");
  replace_file(folder / "a", [&](const fs::path& temporary) {
    std::ofstream(temporary) << "new";
    EXPECT_EQ(read_file(folder / "a"), "old");
  });
  EXPECT_EQ(read_file(folder / "a"), "new");
}

TEST(File, WhatCannotBeReadIsAnError) {
  const TempFolder folder;
  const std::string none = (folder / "none").string(), here = folder.path().string();
  write_file(folder / "empty", "");
  EXPECT_EQ(error_text([&] { read_file(none); }), none + ": no such file; check the path");
  EXPECT_EQ(error_text([&] { MappedFile{none}; }), none + ": no such file; check the path");
  EXPECT_EQ(error_text([&] { read_file(here); }),
            here + ": is a folder, expected a file; check the path");
  EXPECT_EQ(error_text([&] { MappedFile{here}; }),
            here + ": is a folder, expected a file; check the path");
  EXPECT_EQ(error_text([&] { MappedFile{folder / "empty"}; }),
            (folder / "empty").string() + ": the file is empty; copy or download it again");
}

TEST(File, WhatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  const fs::path path = folder / "none/a";
  EXPECT_EQ(error_text([&] { write_file(path, "x"); }),
            path.string() +
                ": cannot be written (No such file or directory); choose an output folder you may "
                "write to");
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_EQ(error_text([&] { write_all(full, "x", "out/a"); }),
            "out/a: the disk is full; free some space or choose another output folder, then run "
            "again");
  ::close(full);
}

TEST(File, MakeFolderMakesParentsAndRefusesAFile) {
  const TempFolder folder;
  make_folder(folder / "a/b/c");
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  write_file(folder / "file", "x");
  EXPECT_EQ(
      error_text([&] { make_folder(folder / "file"); }),
      (folder / "file").string() + ": is a file, expected a folder; choose another output folder");
}

}  // namespace
}  // namespace medusa
