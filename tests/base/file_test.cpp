#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <thread>

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
                            [](int descriptor) {
                              write_all(descriptor, "half of the n", "a");
                              throw std::runtime_error("broken off");
                            }),
               std::runtime_error);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(count_files(folder.path()), 1u);
}

TEST(File, TheNewFileIsNotSeenBeforeItIsWhole) {
  const TempFolder folder;
  write_file(folder / "a", "old");
  replace_file(folder / "a", [&](int descriptor) {
    write_all(descriptor, "new", "a");
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

void make_fifo(const fs::path& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }

/// A socket with a name.
class NamedSocket {
 public:
  explicit NamedSocket(const fs::path& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~NamedSocket() { ::close(fd_); }

 private:
  int fd_;
};

// A device without an end takes all memory, a FIFO without a writer waits for ever.
TEST(File, OnlyRegularFilesAreRead) {
  const TempFolder folder;
  const std::string fifo = (folder / "fifo").string(), socket = (folder / "socket").string();
  make_fifo(fifo);
  const NamedSocket open(socket);
  const auto refused = [](const std::string& path, const std::string& found) {
    const std::string expected =
        path + ": is " + found +
        ", expected a regular file; save what it gives to a file and name that";
    EXPECT_EQ(error_text([&] { read_file(path); }), expected);
    EXPECT_EQ(error_text([&] { MappedFile{path}; }), expected);
    EXPECT_EQ(error_text([&] { read_beginning(path, 1); }), expected);
  };
  refused(fifo, "a FIFO");
  refused(socket, "a socket");
  refused("/dev/zero", "a device");
}

TEST(File, ReadsNoMoreThanItMay) {
  const TempFolder folder;
  const std::string path = (folder / "a").string();
  write_file(path, "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_EQ(error_text([&] { read_file(path, 4); }),
            path +
                ": holds more than 4 bytes, expected at most these; split it into several files, "
                "or check that it is the file that is meant");
  EXPECT_EQ(read_beginning(path, 3), "123");
  EXPECT_EQ(read_beginning(path, 9), "12345");
  fs::resize_file(path, 2 * kMostFileBytes);  // of holes
  EXPECT_NE(error_text([&] { read_file(path); }).find("holds more than"), std::string::npos);
  EXPECT_NE(error_text([&] { read_file_or_stream(path); }).find("holds more than"),
            std::string::npos);
}

TEST(File, AStreamIsReadToItsEnd) {
  const TempFolder folder;
  const fs::path fifo = folder / "fifo";
  make_fifo(fifo);
  std::thread writer([&] {
    const int out = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);  // waits for the reader
    write_all(out, std::string(200000, 'x'), fifo);
    ::close(out);
  });
  EXPECT_EQ(read_file_or_stream(fifo), std::string(200000, 'x'));
  writer.join();
}

TEST(File, ADeviceIsWrittenToAndStays) {
  const TempFolder folder;
  fs::create_symlink("/dev/null", folder / "null");
  fs::create_symlink("/dev/full", folder / "full");
  write_file(folder / "null", "gone");
  EXPECT_EQ(error_text([&] { write_file(folder / "full", "x"); }),
            (folder / "full").string() +
                ": the disk is full; free some space or choose another output folder, then run "
                "again");
  EXPECT_TRUE(fs::is_character_file(folder / "null") && fs::is_symlink(folder / "null"));
  EXPECT_TRUE(fs::is_character_file(folder / "full") && fs::is_symlink(folder / "full"));
  EXPECT_EQ(count_files(folder.path()), 2U);
}

TEST(File, AFifoIsWrittenToOnceItHasAReader) {
  const TempFolder folder;
  const fs::path fifo = folder / "fifo";
  make_fifo(fifo);
  const std::string sent(200000, 'x');  // more than it holds at once
  std::string got;
  std::thread reader([&] { got = read_file_or_stream(fifo); });
  write_file(fifo, sent);
  reader.join();
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_EQ(count_files(folder.path()), 1U);
}

// What somebody has redirected stdout to is theirs, with what it holds already.
TEST(File, AnOpenFileOfAProcessIsAddedTo) {
  const TempFolder folder;
  write_file(folder / "log", "first ");
  const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(log, 0);
  write_file(fmt::format("/dev/fd/{}", log), "second");
  ::close(log);
  EXPECT_EQ(read_file(folder / "log"), "first second");
}

TEST(File, ALinkStaysAndItsTargetIsReplaced) {
  const TempFolder folder;
  make_folder(folder / "there");
  fs::create_symlink("there/b", folder / "middle");
  fs::create_symlink(folder / "middle", folder / "a");
  write_file(folder / "a", "new");  // to nothing yet
  write_file(folder / "a", "newer");
  EXPECT_TRUE(fs::is_symlink(folder / "a") && fs::is_symlink(folder / "middle"));
  EXPECT_EQ(read_file(folder / "there/b"), "newer");
  EXPECT_EQ(count_files(folder / "there"), 1U);
  fs::create_symlink("round", folder / "round");
  EXPECT_EQ(error_text([&] { write_file(folder / "round", "x"); }),
            (folder / "round").string() +
                ": cannot be written (Too many levels of symbolic links); choose an output folder "
                "you may write to");
}

TEST(File, WhatIsNoFileIsNotReplaced) {
  const TempFolder folder;
  make_folder(folder / "folder");
  const NamedSocket socket(folder / "socket");
  const auto refused = [&](const char* name, const std::string& found) {
    EXPECT_EQ(error_text([&] { write_file(folder / name, "x"); }),
              (folder / name).string() + ": is " + found +
                  ", expected a file or nothing there; move it away or name another output file");
  };
  refused("folder", "a folder");
  refused("socket", "a socket");
  EXPECT_EQ(count_files(folder.path()), 2U);
}

TEST(File, WhatSomebodyLaidUnderTheTemporaryNameIsLeftAlone) {
  const TempFolder folder;
  write_file(folder / "victim", "theirs");
  const fs::path planted = folder / fmt::format("a.part-{}", ::getpid());
  fs::create_symlink("victim", planted);
  write_file(folder / "a", "ours");
  EXPECT_EQ(read_file(folder / "victim"), "theirs");
  EXPECT_EQ(read_file(folder / "a"), "ours");
  EXPECT_FALSE(fs::is_symlink(folder / "a"));
  EXPECT_TRUE(fs::is_symlink(planted));
  EXPECT_EQ(count_files(folder.path()), 3U);
}

TEST(File, LongNamesAreWritten) {
  const TempFolder folder;
  const std::string longest(255, 'n');
  write_file(folder / longest, "x");
  EXPECT_EQ(read_file(folder / longest), "x");
  EXPECT_EQ(error_text([&] { write_file(folder / (longest + "n"), "x"); }),
            (folder / (longest + "n")).string() +
                ": cannot be written (File name too long); choose an output folder you may write "
                "to");
  EXPECT_EQ(count_files(folder.path()), 1U);
}

TEST(File, PermissionsAreAsTheUmaskSays) {
  const TempFolder folder;
  const mode_t before = ::umask(027);
  write_file(folder / "a", "x");
  ::umask(before);
  EXPECT_EQ(fs::status(folder / "a").permissions(), static_cast<fs::perms>(0640));
}

TEST(File, ALimitOnFileSizesIsAnErrorAndLeavesNothing) {
  const TempFolder folder;
  write_file(folder / "a", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_text([&] { write_file(folder / "a", std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, (folder / "a").string() +
                       ": grows larger than a file may here, expected a limit that it fits into; "
                       "raise it (ulimit -f) or choose another output folder, then run again");
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(count_files(folder.path()), 1U);
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
