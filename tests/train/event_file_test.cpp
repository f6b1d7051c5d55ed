#include "train/record/event_file.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

class EventFileTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "new" / EventFile::kName; }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> out;
    for (const Event& event : read_event_file(file()))
      if (!event.scalars.empty()) out.push_back(event.step);
    return out;
  }
  fixtures::TempFolder folder_;
};

TEST_F(EventFileTest, GivesBackWhatWasAdded) {
  {
    EventFile events(file(), 0);
    events.add(20, {{"train/loss_nats", 2.5}, {"train/top_1/head_0", 0.25}});
    events.add(300, {{"guard/guard_kl_nats", 1e-9}});
  }
  const auto events = read_event_file(file());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_TRUE(events[0].scalars.empty());
  EXPECT_EQ(events[1].step, 20);
  EXPECT_EQ(events[1].scalars, (Scalars{{"train/loss_nats", 2.5}, {"train/top_1/head_0", 0.25}}));
  EXPECT_EQ(events[2].step, 300);
  EXPECT_FLOAT_EQ(static_cast<float>(events[2].scalars.at(0).second), 1e-9F);
  EXPECT_GT(events[1].wall_time_s, 1.6e9);
}

/// The first record, byte by byte, as TensorFlow's format says.
TEST_F(EventFileTest, TheFirstRecordSaysTheVersion) {
  EventFile(file(), 0);
  const std::string text = read_file(file());
  ASSERT_EQ(text.size(), 8 + 4 + 26 + 4U);
  EXPECT_EQ(text.substr(0, 8), std::string("\x1a\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(text.substr(8, 4), "\x12\x9b\xd8\x2d");  // computed apart, in Python
  EXPECT_EQ(text[12], '\x09');                       // field 1, 8 bytes
  EXPECT_EQ(text.substr(21, 4), std::string("\x10\x00\x1a\x0d", 4));
  EXPECT_EQ(text.substr(25, 13), "brain.Event:2");
}

TEST_F(EventFileTest, AResumedRunCutsWhatCameAfterItsCheckpoint) {
  {
    EventFile events(file(), 0);
    for (const int64_t step : {1, 2, 3, 4}) events.add(step, {{"a", 1}});
  }
  const std::string whole = read_file(file());
  write_file(file(), whole.substr(0, whole.size() - 3));  // cut off by a crash
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2, 3}));
  EventFile(file(), 2).add(3, {{"a", 2}});
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(read_event_file(file()).back().scalars[0].second, 2);
  EventFile(file(), 0);
  EXPECT_TRUE(steps().empty()) << "a run from the start begins a new file";
}

TEST_F(EventFileTest, AnAlteredRecordIsSaidAndGivenUpByTheNextRun) {
  { EventFile(file(), 0).add(7, {{"a", 1}}); }
  std::string text = read_file(file());
  text[text.size() - 6] ^= 1;
  write_file(file(), text);
  EXPECT_EQ(fixtures::error_text(folder_, [&] { read_event_file(file()); }),
            "<>/new/events.out.tfevents.medusa: the record at byte 42 has other bytes than its "
            "checksum says, expected an event file of medusa train; remove it");
  EventFile(file(), 7).add(8, {{"a", 1}});
  EXPECT_EQ(steps(), (std::vector<int64_t>{8}));
}

TEST_F(EventFileTest, WhatAPowerCutLeftBehindWholeRecordsIsCutAlone) {
  { EventFile(file(), 0).add(1, {{"a", 1}}); }
  write_file(file(), read_file(file()) + std::string(100, '\0'));
  EventFile(file(), 1).add(2, {{"a", 1}});
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2}));
}

// The check value of its definition and the examples of RFC 3720, B.4.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(""), 0U);
}

}  // namespace

}  // namespace medusa
