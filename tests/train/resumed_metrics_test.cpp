// What metrics.jsonl and the event file say after a run was killed or interrupted behind any of its
// records: what an unbroken run says, nothing twice and nothing missing.
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <utility>

#include "tests/train/child_run.h"
#include "tests/train/tiny_joint.h"
#include "train/record/event_file.h"

namespace medusa {
namespace {

/// Each record, but for what no two runs have in common: times and memory.
using Lines = std::vector<nlohmann::json>;

Lines lines_in(const std::filesystem::path& metrics) {
  Lines out;
  std::istringstream text(read_file(metrics));
  for (std::string line; std::getline(text, line);) {
    auto json = nlohmann::json::parse(line);
    for (const char* name : {"elapsed_s", "positions_per_s", "memory_bytes"}) json.erase(name);
    out.push_back(std::move(json));
  }
  return out;
}

/// Kind and step of each record.
using Records = std::vector<std::pair<std::string, int64_t>>;

Records records_in(const std::filesystem::path& metrics) {
  Records out;
  for (const auto& line : lines_in(metrics)) out.emplace_back(line.at("kind"), line.at("step"));
  return out;
}

Records events_beside(const std::filesystem::path& metrics) {
  Records out;
  for (const Event& event : read_event_file(metrics.parent_path() / EventFile::kName))
    if (!event.scalars.empty()) {
      const std::string& tag = event.scalars[0].first;
      out.emplace_back(tag.substr(0, tag.find('/')), event.step);
    }
  return out;
}

/// Trains in another process, which signals itself behind record number `at`.
/// @param train  gets what to call behind each record.
/// @returns  its status, as waitpid gives it.
template <typename Train>
int signal_behind_record(const Train& train, size_t at, int signal) {
  const pid_t child = fork();
  if (child == 0) {
    install_interrupt_handler();
    size_t records = 0;
    train([&](const Metrics&) {
      if (++records == at) raise(signal);
    });
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

/// Breaks a run behind each record in turn and finishes it.
/// @param train  (name, reported) trains in the folder of that name.
template <typename Train>
void expect_the_same_records(const TinyRun& run, const Train& train, int signal,
                             const std::vector<std::string>& artifacts) {
  train("whole", Reported());
  const Lines whole = lines_in(run.metrics("whole"));
  const Records records = records_in(run.metrics("whole"));
  ASSERT_EQ(events_beside(run.metrics("whole")), records);
  ASSERT_GE(whole.size(), 8U);
  for (size_t at = 1; at <= whole.size(); ++at) {
    SCOPED_TRACE(at);
    const std::string name = "broken" + std::to_string(at);
    const int status =
        signal_behind_record([&](const Reported& reported) { train(name, reported); }, at, signal);
    ASSERT_EQ(WIFSIGNALED(status), signal == SIGKILL);
    train(name, Reported());
    EXPECT_EQ(lines_in(run.metrics(name)), whole);
    EXPECT_EQ(events_beside(run.metrics(name)), records);
    for (const std::string& file : artifacts)
      EXPECT_EQ(read_file(run.folder.path() / name / file),
                read_file(run.folder.path() / "whole" / file));
  }
}

struct HeadsRun : TinyRun {
  HeadsRun() {
    config.optimizer.epochs = 3;
    config.reports.checkpoint_every = 3;
    config.reports.report_every = 2;
    config.keep_best = true;
    config.optimizer.learning_rate = 0.05;  // too large: the last epoch need not be the best one
  }
  TrainResult train_and_report(const std::string& name, const Reported& reported) const {
    const DatasetReader dataset = open_data();
    return train_heads(config, heads,
                       {dataset, backbone, nullptr, folder.path() / name / "heads",
                        folder.path() / name / "train", "settings of the run\n", reported});
  }
};

TEST(ResumedMetrics, OfHeadsKilledBehindAnyRecordAreThoseOfAnUnbrokenRun) {
  const HeadsRun run;
  expect_the_same_records(run,
                          [&](const std::string& name, const Reported& reported) {
                            run.train_and_report(name, reported);
                          },
                          SIGKILL, {"heads/heads.safetensors", "heads/manifest.yaml"});
}

TEST(ResumedMetrics, OfHeadsInterruptedBehindAnyRecordAreThoseOfAnUnbrokenRun) {
  HeadsRun run;
  run.config.reports.report_every = 1;  // so that a run is interrupted at the end of an epoch, too
  expect_the_same_records(run,
                          [&](const std::string& name, const Reported& reported) {
                            run.train_and_report(name, reported);
                          },
                          SIGINT, {"heads/heads.safetensors", "heads/manifest.yaml"});
}

TEST(ResumedMetrics, OfAJointStageKilledBehindAnyRecordAreThoseOfAnUnbrokenRun) {
  TinyJoint run;
  run.joint.reports.report_every = 2;
  run.joint.max_steps = 7;
  const DatasetReader dataset = run.open_data();
  const MedusaHeads first = run.first_heads();
  expect_the_same_records(run,
                          [&](const std::string& name, const Reported& reported) {
                            train_joint(run.config, run.joint,
                                        {dataset, run.backbone, first, "sha256:5",
                                         run.folder.path() / name / "train", reported});
                          },
                          SIGKILL, {"train/checkpoint/state.safetensors"});
}

/// All bytes below a folder, by name.
std::map<std::string, std::string> files_below(const std::filesystem::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) out[entry.path().string()] = read_file(entry.path());
  return out;
}

TEST(ResumedMetrics, AFinishedRunThatIsStartedAgainChangesNoByte) {
  const HeadsRun heads;
  heads.train_and_report("a", {});
  const auto before = files_below(heads.folder.path() / "a");
  ASSERT_GE(before.size(), 8U);
  heads.train_and_report("a", {});
  EXPECT_TRUE(files_below(heads.folder.path() / "a") == before);

  TinyJoint joint;
  joint.joint.max_steps = 5;
  joint.train_jointly("b");
  const auto tuned = files_below(joint.folder.path() / "b");
  joint.train_jointly("b");
  EXPECT_TRUE(files_below(joint.folder.path() / "b") == tuned);
}

}  // namespace
}  // namespace medusa
