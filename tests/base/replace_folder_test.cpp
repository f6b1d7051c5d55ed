#include "base/replace_folder.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "base/error.h"
#include "base/file.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

using fixtures::error_text;
using fixtures::TempFolder;
namespace fs = std::filesystem;

void write_one(const fs::path& fresh) { write_file(fresh / "new", "new"); }

TEST(ReplaceFolder, OnlyAFinishedOrEmptyOneMakesRoom) {
  const TempFolder folder;
  replace_folder(folder / "a", write_one);  // nothing there
  EXPECT_TRUE(folder_is_done(folder / "a"));
  replace_folder(folder / "a", [](const fs::path& fresh) {  // a finished one
    write_file(fresh / "left", "of before");
    make_folder(fresh / "inside");
  });
  replace_folder(folder / "a", write_one);
  EXPECT_FALSE(fs::exists(folder / "a/left"));
  make_folder(folder / "empty");
  replace_folder(folder / "empty/", write_one);
  EXPECT_EQ(read_file(folder / "empty/new"), "new");

  make_folder(folder / "photos");
  write_file(folder / "photos/cat.jpg", "a cat");
  const std::string expected =
      (folder / "photos").string() +
      ": holds files but no DONE, expected nothing there, an empty folder or one that medusa "
      "finished; move it or choose another folder";
  EXPECT_EQ(error_text([&] { check_replaceable(folder / "photos"); }), expected);
  bool began = false;
  EXPECT_EQ(error_text(
                [&] { replace_folder(folder / "photos", [&](const fs::path&) { began = true; }); }),
            expected);
  EXPECT_FALSE(began);
  EXPECT_EQ(read_file(folder / "photos/cat.jpg"), "a cat");
}

TEST(ReplaceFolder, WhatWasPutThereLaterIsNotRemoved) {
  const TempFolder folder;
  replace_folder(folder / "a", write_one);
  write_file(folder / "a/notes", "mine");
  const std::string where = (folder / "a").string();
  EXPECT_EQ(
      error_text([&] { replace_folder(folder / "a", write_one); }),
      where +
          ": holds 'notes', which was put there later, expected only what medusa wrote, since "
          "all of it would be replaced; move 'notes' away or choose another folder");
  EXPECT_EQ(read_file(folder / "a/notes"), "mine");
  write_file(folder / "a/DONE", "");  // as earlier programs left it: files are theirs
  replace_folder(folder / "a", write_one);
  write_file(folder / "a/DONE", "");
  make_folder(folder / "a/export");
  EXPECT_NE(error_text([&] { check_replaceable(folder / "a"); }).find("holds 'export'"),
            std::string::npos);
}

TEST(ReplaceFolder, ALinkStaysAndItsTargetIsReplaced) {
  const TempFolder folder;
  make_folder(folder / "disk");
  fs::create_directory_symlink("disk/heads", folder / "heads");
  replace_folder(folder / "heads", write_one);
  replace_folder(folder / "heads", write_one);
  EXPECT_TRUE(fs::is_symlink(folder / "heads"));
  EXPECT_EQ(read_file(folder / "disk/heads/new"), "new");
}

TEST(ReplaceFolder, ALinkUnderTheTemporaryNameIsNotFollowed) {
  const TempFolder folder;
  make_folder(folder / "victim");
  write_file(folder / "victim/theirs", "x");
  fs::create_directory_symlink("victim", folder / "a.partial");
  replace_folder(folder / "a", write_one);
  EXPECT_EQ(read_file(folder / "victim/theirs"), "x");
  EXPECT_FALSE(fs::exists(folder / "victim/new"));
  EXPECT_FALSE(fs::is_symlink(folder / "a"));
}

TEST(CreateFolder, IsWholeOrAbsent) {
  const TempFolder folder;
  make_folder(folder / "a.partial");
  write_file(folder / "a.partial/left", "of a kill");
  const auto fails = [](const fs::path& fresh) {
    write_one(fresh);
    throw std::runtime_error("full");
  };
  EXPECT_THROW(create_folder(folder / "a", fails), std::runtime_error);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  create_folder(folder / "b/a/", write_one);
  EXPECT_EQ(read_file(folder / "b/a/new"), "new");
  EXPECT_FALSE(fs::exists(folder / "b/a/DONE"));
  EXPECT_NE(error_text([&] { create_folder(folder / "b/a", write_one); }), "(no error)");
  EXPECT_FALSE(fs::exists(folder / "b/a.partial"));
}

TEST(ReplaceFolder, AFailureLeavesTheOldOneAlone) {
  const TempFolder folder;
  replace_folder(folder / "a", write_one);
  EXPECT_THROW(replace_folder(folder / "a",
                              [](const fs::path& fresh) {
                                write_file(fresh / "half", "x");
                                throw std::runtime_error("broken off");
                              }),
               std::runtime_error);
  EXPECT_EQ(read_file(folder / "a/new"), "new");
  EXPECT_FALSE(fs::exists(folder / "a.partial"));
}

TEST(ReplaceFolder, AFolderIsRemovedWithWhatAKillLeftOfItsRemoval) {
  const TempFolder folder;
  replace_folder(folder / "a", write_one);
  make_folder(folder / "a.partial");
  write_file(folder / "a.partial/left", "of before");
  remove_folder(folder / "a/");
  remove_folder(folder / "a");  // nothing there
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_FALSE(fs::exists(folder / "a.partial"));
}

// What a kill leaves where two names cannot be swapped: between the two renames, and after them.
TEST(ReplaceFolder, WhatAKillInterruptedIsFinished) {
  const TempFolder folder;
  const auto leave = [&](const std::string& name, bool done) {
    make_folder(folder / name);
    write_file(folder / name / "of", name);
    if (done) write_file(folder / name / "DONE", "");
  };
  leave("a.partial", true);
  leave("a.partial-old", true);
  finish_replacement(folder / "a");
  EXPECT_EQ(read_file(folder / "a/of"), "a.partial");
  EXPECT_TRUE(folder_is_done(folder / "a"));

  leave("b.partial", false);  // never finished: the old one is the folder
  leave("b.partial-old", true);
  finish_replacement(folder / "b");
  EXPECT_EQ(read_file(folder / "b/of"), "b.partial-old");

  leave("c", true);
  leave("c.partial-old", true);
  finish_replacement(folder / "c");
  EXPECT_EQ(read_file(folder / "c/of"), "c");
  for (const char* name : {"a", "b", "c"})
    EXPECT_FALSE(fs::exists(folder / (std::string(name) + ".partial-old"))) << name;

  leave("d.partial", true);  // nobody has taken its place: it is an unfinished writer's
  finish_replacement(folder / "d");
  EXPECT_FALSE(fs::exists(folder / "d"));
}

}  // namespace
}  // namespace medusa
