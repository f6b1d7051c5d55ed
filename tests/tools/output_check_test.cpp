#include "tools/run/output_check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/replace_folder.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::TempFolder;
namespace fs = std::filesystem;

constexpr const char* kTree =
    "# mine\nformat: medusa-choice-tree\nversion: 1\ntop_k: 1\nnodes:\n  - [0]\n";

// A mistyped name must not cost a file that took somebody a week.
TEST(OutputCheck, OnlyAFileOfTheSameKindIsReplaced) {
  const TempFolder folder;
  const auto check = [&](const char* name) {
    return error_text(folder, [&] { check_output_file(folder / name, ArtifactKind::Tree); });
  };
  write_file(folder / "tree", kTree);
  write_file(folder / "empty", "");
  write_file(folder / "thesis.tex", "\\documentclass{book}");
  write_file(folder / "settings", "backbone:\n  model: m.gguf\n");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  fs::create_symlink("thesis.tex", folder / "link");
  for (const char* name : {"tree", "empty", "none", "fifo"}) EXPECT_EQ(check(name), "(no error)");
  EXPECT_EQ(error_text([] { check_output_file("/dev/null", ArtifactKind::Tree); }), "(no error)");
  for (const std::string name : {"thesis.tex", "settings", "link"})
    EXPECT_EQ(check(name.c_str()), "<>/" + name +
                                       ": holds something else, expected a file of the kind "
                                       "'choice tree', an empty file or nothing there, since it "
                                       "would be replaced; move it away or name another output");
  make_folder(folder / "folder");
  EXPECT_NE(check("folder").find("is a folder"), std::string::npos);
}

// Known before the hours, not after them.
TEST(OutputCheck, AFolderThatCannotBeWrittenToIsToldAtOnce) {
  const TempFolder folder;
  const auto tree = [&](const char* name) {
    return error_text(folder, [&] { check_output_file(folder / name, ArtifactKind::Tree); });
  };
  EXPECT_EQ(tree("new/x"), "(no error)");
  const bool is_root = ::geteuid() == 0;  // who may write everywhere
  fs::permissions(folder.path(), static_cast<fs::perms>(0555));
  ASSERT_TRUE(!is_root || ::seteuid(65534) == 0);
  const std::string file = tree("new/x");
  const std::string heads =
      error_text(folder, [&] { check_output_folder(folder / "heads", ArtifactKind::Heads); });
  const std::string fresh =
      error_text(folder, [&] { check_new_folder(folder / "out/new", "--output"); });
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  fs::permissions(folder.path(), static_cast<fs::perms>(0755));
  EXPECT_EQ(fresh.find("<>/out/new: <> cannot be written to"), 0U) << fresh;
  EXPECT_EQ(error_text([&] { check_new_folder(folder / "out/new", "--output"); }), "(no error)");
  EXPECT_EQ(error_text(folder, [&] { check_new_folder(folder.path(), "--output"); }),
            "<>: exists already, expected a new folder; remove it or name another with --output");
  EXPECT_EQ(file,
            "<>/new/x: <> cannot be written to (Permission denied), expected a folder that can; "
            "name another output, or check the folder's permissions");
  EXPECT_EQ(heads.find("<>/heads: <> cannot be written to"), 0U);
}

TEST(OutputCheck, OnlyAFinishedFolderOfTheSameKindIsReplaced) {
  const TempFolder folder;
  const auto check = [&](const char* name) {
    return error_text(folder, [&] { check_output_folder(folder / name, ArtifactKind::Heads); });
  };
  replace_folder(folder / "heads",
                 [](const fs::path& fresh) { write_file(fresh / "manifest.yaml", "x"); });
  replace_folder(folder / "job", [](const fs::path& fresh) { write_file(fresh / "result", "x"); });
  make_folder(folder / "empty");
  make_folder(folder / "photos");
  write_file(folder / "photos/cat.jpg", "x");
  for (const char* name : {"heads", "empty", "none"}) EXPECT_EQ(check(name), "(no error)");
  EXPECT_EQ(check("job"),
            "<>/job: holds something else, expected a folder of the kind 'trained heads', an empty "
            "one or nothing there, since it would be replaced; move it away or name another "
            "output");
  EXPECT_EQ(check("photos"),
            "<>/photos: holds files but no DONE, expected nothing there, an empty folder or one "
            "that medusa finished; move it or choose another folder");
}

}  // namespace
}  // namespace medusa
