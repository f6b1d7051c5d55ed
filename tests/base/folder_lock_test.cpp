#include "base/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <set>

#include "base/file.h"
#include "tests/base/error_text.h"

namespace {
bool file_system_has_locks = true;
}  // namespace

/// Stands before the C library's, so that a file system without locks can be had.
extern "C" int flock(int descriptor, int operation) noexcept {
  if (file_system_has_locks) return static_cast<int>(syscall(SYS_flock, descriptor, operation));
  errno = ENOLCK;
  return -1;
}

namespace medusa {
namespace {

namespace fs = std::filesystem;
using fixtures::TempFolder;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

/// A process that holds the folder's lock until it is killed.
class OtherHolder {
 public:
  explicit OtherHolder(const fs::path& folder) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    process_ = fork();
    if (process_ == 0) {
      const FolderLock lock(folder, "medusa train");
      if (write(ready[1], "x", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "it did not get the lock";
    close(ready[0]);
  }
  ~OtherHolder() { end(); }
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
};

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

TEST(FolderLock, SaysWhoHoldsItAndLeavesNothing) {
  const TempFolder folder;
  {
    const FolderLock lock(folder / "run", "medusa train");
    const std::string text = read_file(folder / "run" / FolderLock::kName);
    EXPECT_NE(text.find("command: medusa train\npid: " + std::to_string(getpid()) + "\nhost: "),
              std::string::npos)
        << text;
    write_file(folder / "run/artefact", "");
  }
  EXPECT_EQ(names_in(folder / "run"), std::set<std::string>{"artefact"});
  { const FolderLock lock(folder / "none", "medusa train"); }
  EXPECT_FALSE(fs::exists(folder / "none")) << "nothing was made in it";
}

TEST(FolderLock, AnotherProcessIsRefusedAndToldWhoHoldsIt) {
  const TempFolder folder;
  const OtherHolder holder(folder.path());
  const std::string before = read_file(folder / FolderLock::kName);
  const std::string error =
      fixtures::error_text(folder, [&] { FolderLock(folder.path(), "medusa distill"); });
  const std::string begin = "<>: medusa train (process " + std::to_string(holder.process()) +
                            " on " + host_name() + ", since 20";
  EXPECT_TRUE(error.starts_with(begin)) << error;
  EXPECT_TRUE(error.ends_with(
      " UTC) writes here, expected no other command; wait for its end, or set another run"))
      << error;
  EXPECT_EQ(read_file(folder / FolderLock::kName), before) << "who is refused changes nothing";
}

TEST(FolderLock, OneThatAKilledProcessLeftIsTakenOver) {
  const TempFolder folder;
  OtherHolder holder(folder.path());
  const std::string number = std::to_string(holder.process());
  holder.end();
  ASSERT_TRUE(fs::exists(folder / FolderLock::kName));
  testing::internal::CaptureStderr();
  std::optional<FolderLock> lock;
  EXPECT_EQ(fixtures::error_text(folder, [&] { lock.emplace(folder.path(), "medusa distill"); }),
            "(no error)");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(": taken over from medusa train (process " + number + " on "),
            std::string::npos)
      << said;
  EXPECT_NE(read_file(folder / FolderLock::kName).find("command: medusa distill\n"),
            std::string::npos);
  EXPECT_EQ(read_file(folder / FolderLock::kName).find(number + "\n"), std::string::npos);
  lock.reset();
  EXPECT_TRUE(names_in(folder.path()).empty());
}

/// Many at once: never two inside, also while holders remove the file that others have opened.
TEST(FolderLock, IsHeldByOneAtATimeHoweverManyComeAndGo) {
  const TempFolder folder;
  constexpr int kProcesses = 4, kTimes = 200;
  std::vector<pid_t> processes;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      processes.push_back(child);
      continue;
    }
    for (int got = 0; got < kTimes;) {
      std::optional<FolderLock> lock;
      if (fixtures::error_text([&] { lock.emplace(folder.path(), "medusa train"); }) !=
          "(no error)")
        continue;
      ++got;
      // mkdir fails if another one is inside.
      if (mkdir((folder / "inside").c_str(), 0700) != 0 || rmdir((folder / "inside").c_str()) != 0)
        _exit(1);
    }
    _exit(0);
  }
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    EXPECT_EQ(status, 0) << "two were inside, or it was signalled";
  }
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(FolderLock, WhatOthersPutInItsPlaceIsNotFollowedWaitedForOrShown) {
  const TempFolder folder;
  const fs::path file = folder / FolderLock::kName;
  const auto error = [&] {
    return fixtures::error_text(folder, [&] { FolderLock(folder.path(), "medusa train"); });
  };
  const std::string rest =
      "), expected the lock of the commands that write here; remove it if none runs, or choose "
      "another folder";
  write_file(folder / "precious", "text");
  fs::create_symlink(folder / "precious", file);
  EXPECT_EQ(error(), "<>/.medusa.lock: cannot be opened (Too many levels of symbolic links" + rest);
  EXPECT_EQ(read_file(folder / "precious"), "text");
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(error(), "<>/.medusa.lock: cannot be opened (it is no regular file" + rest);
  fs::remove(file);

  const OtherHolder holder(folder.path());
  const int descriptor = open(file.c_str(), O_WRONLY | O_TRUNC);
  write_all(descriptor, "command: \"\\e]0;title\\a\"\npid: 7\nhost: \"a\\nb\"\nsince: now\n", file);
  close(descriptor);
  EXPECT_TRUE(error().starts_with("<>: ?]0;title? (process 7 on a?b, since now) writes here"))
      << error();
  ASSERT_EQ(truncate(file.c_str(), 0), 0);
  EXPECT_TRUE(error().starts_with("<>: another command writes here")) << error();
}

TEST(FolderLock, AFileSystemWithoutLocksIsSaidAndGoneOnWith) {
  const TempFolder folder;
  file_system_has_locks = false;
  testing::internal::CaptureStderr();
  std::optional<FolderLock> lock;
  const std::string error =
      fixtures::error_text([&] { lock.emplace(folder.path(), "medusa train"); });
  const std::string said = testing::internal::GetCapturedStderr();
  file_system_has_locks = true;
  EXPECT_EQ(error, "(no error)");
  EXPECT_EQ(said, folder.path().string() +
                      ": cannot be locked (No locks available), so nothing keeps a second command "
                      "from writing here\n");
  lock.reset();
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(RemoveLeftovers, TakesThoseOfDeadProcessesAlone) {
  const TempFolder folder;
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  const std::string of_dead = std::to_string(dead), of_living = std::to_string(getppid());
  // A process that has begun anew may have the number of one that was killed, and has left nothing.
  const std::string of_this = std::to_string(getpid());
  for (const std::string& name :
       {"a.html.part-" + of_dead, "a.html.part-" + of_this, "a.html.part-" + of_living,
        "b.html.part-" + of_dead, std::string("a.html.part-"), std::string("a.html.part-00x"),
        std::string("a.html.part--1"), std::string("a.html")})
    write_file(folder / name, "");
  remove_leftovers(folder / "a.html");
  EXPECT_EQ(names_in(folder.path()),
            (std::set<std::string>{"a.html", "a.html.part-", "a.html.part--1", "a.html.part-00x",
                                   "a.html.part-" + of_living, "b.html.part-" + of_dead}));
  remove_leftovers(folder / "none/a.html");
}

}  // namespace
}  // namespace medusa
