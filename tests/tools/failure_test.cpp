#include "tools/failure.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>

#include "base/error.h"
#include "base/interrupt.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// Of what run() throws.
template <typename Run>
Failure failure_from(const Run& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return failure_of(error);
  }
  return {};
}

TEST(Failure, WhatTheUserCanCorrectHasStatus2AndItsMessage) {
  const Failure failure = failure_of(UserError("a.yaml: found x, expected y; mend it"));
  EXPECT_EQ(failure.status, 2);
  EXPECT_EQ(failure.message, "a.yaml: found x, expected y; mend it");
}

TEST(Failure, PathsThatLeadNowhereAreForTheUserToCorrect) {
  const std::string name(300, 'n');
  const Failure failure = failure_from([&] { return fs::exists(name); });
  EXPECT_EQ(failure.status, 2);
  EXPECT_EQ(failure.message,
            name +
                ": cannot be used (File name too long), expected a path that leads to a file or "
                "folder; check its names, its symbolic links and its permissions");
  const auto full = std::make_error_code(std::errc::no_space_on_device);
  EXPECT_EQ(failure_of(fs::filesystem_error("copy", "a", "b", full)).message,
            "a: the disk is full; free some space or choose another output folder, then run again");
  EXPECT_EQ(failure_of(fs::filesystem_error("status", "\x1b[31m", full)).message.find('\x1b'),
            std::string::npos);
}

// Whoever runs out of memory learns what takes it, not that they found a bug.
TEST(Failure, MemoryThatRanOutIsNoBug) {
  const auto told = [](const Failure& failure) {
    EXPECT_EQ(failure.status, 2);
    EXPECT_EQ(failure.message.find("memory: the machine or a limit (ulimit -v) gives no more"), 0U)
        << failure.message;
  };
  told(failure_of(std::bad_alloc()));
  // LibTorch's own words, whatever they are in this version: no machine has so much.
  told(failure_from([] { at::empty({std::numeric_limits<int64_t>::max() / 2}, at::kByte); }));
}

TEST(Failure, ThreadsThatTheSystemRefusesAreNoBug) {
  const auto none = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(failure_of(std::system_error(none)).status, 2);
  EXPECT_EQ(failure_of(std::system_error(none)).message.find("threads: "), 0U);
}

TEST(Failure, AnInterruptTellsOnlyWhatIsMissingForIt) {
  install_interrupt_handler();
  outlive_sigint();  // the signal can be forgotten then
  ::raise(SIGINT);
  EXPECT_EQ(failure_of(Interrupted()).status, 130);
  EXPECT_EQ(failure_of(Interrupted()).message, "");
  EXPECT_EQ(failure_of(Interrupted("nothing was measured")).status, 130);
  EXPECT_EQ(failure_of(Interrupted("nothing was measured")).message, "nothing was measured");
  EXPECT_TRUE(take_sigint());
}

TEST(Failure, AllElseIsABug) {
  const Failure failure = failure_of(std::logic_error("x > 0"));
  EXPECT_EQ(failure.status, 70);
  EXPECT_EQ(failure.message,
            "x > 0\nmedusa: this is a bug, please report it with the command line");
}

}  // namespace
}  // namespace medusa
