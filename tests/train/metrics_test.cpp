#include "train/record/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

Metrics at_step(int64_t step, const char* kind = "train") {
  Metrics metrics;
  metrics.kind = kind;
  metrics.step = step;
  metrics.loss = 2.5;
  metrics.heads = {{3, 0.5, 0.75, 1}, {4, 0.25, 0.5, 0.625}};
  metrics.learning_rate = 0.001;
  return metrics;
}

std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(MetricsLog, EachReportIsALine) {
  const fixtures::TempFolder folder;
  const auto file = folder.path() / "new/metrics.jsonl";
  MetricsLog log(file, 0);
  log.add(at_step(10));
  log.add(at_step(10, "validation"));
  const auto lines = lines_of(file);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["step"], 10);
  EXPECT_EQ(lines[0]["loss_nats"], 2.5);
  EXPECT_EQ(lines[0]["top_5"], nlohmann::json({0.75, 0.5}));
  EXPECT_EQ(lines[0]["learning_rate"], 0.001);
  EXPECT_EQ(lines[1]["kind"], "validation");
  EXPECT_FALSE(lines[1].contains("learning_rate"));
}

TEST(MetricsLog, AResumedRunCutsWhatCameAfterItsCheckpoint) {
  const fixtures::TempFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  {
    MetricsLog log(file, 0);
    for (const int64_t step : {1, 2, 3, 4}) log.add(at_step(step));
  }
  write_file(file, read_file(file) + R"({"kind":"train","step":2)");  // cut off by a crash
  MetricsLog log(file, 2);
  log.add(at_step(3));
  const auto lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1]["step"], 2);
  EXPECT_EQ(lines[2]["step"], 3);
}

TEST(MetricsLog, EveryNumberIsACurveForTensorBoard) {
  const fixtures::TempFolder folder;
  std::vector<int64_t> reported;
  MetricsLog log(folder.path() / "metrics.jsonl", 0,
                 [&](const Metrics& each) { reported.push_back(each.step); });
  Metrics metrics = at_step(10);
  metrics.more = {{"backbone_loss_nats", 0.5}};
  log.add(metrics);
  log.add(at_step(10, "validation"));
  EXPECT_EQ(reported, (std::vector<int64_t>{10, 10}));
  const auto events = read_event_file(folder.path() / EventFile::kName);
  ASSERT_EQ(events.size(), 3U);
  const std::map<std::string, double> found(events[1].scalars.begin(), events[1].scalars.end());
  EXPECT_EQ(found.at("train/loss_nats"), 2.5);
  EXPECT_EQ(found.at("train/top_5/head_1"), 0.5);
  EXPECT_EQ(found.at("train/backbone_loss_nats"), 0.5);
  EXPECT_FALSE(found.contains("train/step"));
  EXPECT_EQ(events[2].scalars[1], (std::pair<std::string, double>("validation/loss_nats", 2.5)));
}

TEST(MetricsLog, ARunFromTheStartBeginsANewLog) {
  const fixtures::TempFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  MetricsLog(file, 0).add(at_step(0, "validation"));
  MetricsLog(file, 0).add(at_step(0, "validation"));  // killed before its first checkpoint
  EXPECT_EQ(lines_of(file).size(), 1U);
}

}  // namespace
}  // namespace medusa
