// Several commands in one run folder, and what commands that were killed leave in it.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "program.h"

namespace medusa::cli {
namespace {

namespace fs = std::filesystem;

/// The program in a process of its own, killed at the end.
class Started {
 public:
  Started(const CliFixture& place, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), MEDUSA_BINARY);
    std::vector<char*> words;
    for (std::string& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    process_ = fork();
    if (process_ != 0) return;
    const int nothing = open("/dev/null", O_RDWR);
    for (const int descriptor : {0, 1, 2}) dup2(nothing, descriptor);
    if (chdir((place / "").c_str()) == 0) execv(words[0], words.data());
    _exit(127);
  }
  ~Started() { end(SIGKILL); }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  pid_t process() const { return process_; }
  void send(int signal) const { kill(process_, signal); }
  void end(int signal) {
    if (process_ <= 0) return;
    kill(process_, signal);
    waitpid(process_, nullptr, 0);
    process_ = -process_;
  }

 private:
  pid_t process_ = 0;
};

/// Kind and step of each whole line.
std::vector<std::pair<std::string, int64_t>> reports_in(const fs::path& metrics) {
  std::vector<std::pair<std::string, int64_t>> out;
  std::istringstream text(file_text(metrics));
  for (std::string line; std::getline(text, line) && !text.eof();) {
    const auto report = nlohmann::json::parse(line);
    out.emplace_back(report.at("kind"), report.at("step"));
  }
  return out;
}

/// Waits, for a minute at most, until there are so many.
bool wait_for_reports(const fs::path& metrics, size_t count) {
  for (int i = 0; i < 60000; ++i) {
    if (fs::exists(metrics) && reports_in(metrics).size() >= count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// Names below a folder of what a command makes on its way and takes away again.
std::vector<std::string> litter_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".part") != std::string::npos || name.ends_with(".lock")) names.push_back(name);
  }
  return names;
}

class RunLock : public DistilledRun {};

TEST_F(RunLock, OneCommandAtATimeWritesARunAndAKilledOneLeavesNothing) {
  const std::vector<std::string> train{"train",
                                       "--config",
                                       "run.yaml",
                                       "--set",
                                       "train.epochs=200",
                                       "--set",
                                       "train.report_every=1",
                                       "--set",
                                       "train.checkpoint_every=50"};
  Started first(place_, train);
  ASSERT_TRUE(wait_for_reports(place_ / "runs/tiny/train/metrics.jsonl", 1));
  first.send(SIGSTOP);
  const std::string shards = file_text(place_ / "runs/tiny/dataset/shard-00000.h5");
  const std::string metrics = file_text(place_ / "runs/tiny/train/metrics.jsonl");
  for (const char* command :
       {"train --config run.yaml", "distill --config run.yaml --seed 4",
        "make-draft --config run.yaml", "bench --config run.yaml --questions prompts.jsonl",
        "dataset merge --config run.yaml runs/tiny/dataset"}) {
    const ProcessResult ran = place_.run(command);
    EXPECT_EQ(ran.status, 2) << command;
    EXPECT_NE(ran.err.find("medusa: runs/tiny: medusa train (process " +
                           std::to_string(first.process()) + " on "),
              std::string::npos)
        << ran.err;
    EXPECT_NE(ran.err.find(") writes here, expected no other command; wait for its end, or set "
                           "another run\n"),
              std::string::npos)
        << ran.err;
  }
  // Who reads, writes a file of its own or into another folder is not locked out.
  for (const char* command :
       {"inspect runs/tiny", "report --config run.yaml", "build-store --config run.yaml",
        "distill --config run.yaml --shard 0/2", "train --config run.yaml --dry-run"}) {
    const ProcessResult ran = place_.run(command);
    EXPECT_EQ(ran.status, 0) << command << ": " << ran.err;
  }
  EXPECT_EQ(file_text(place_ / "runs/tiny/dataset/shard-00000.h5"), shards);
  EXPECT_EQ(file_text(place_ / "runs/tiny/train/metrics.jsonl"), metrics);

  // As if it had been killed while it wrote these. The last one is of a living process.
  first.send(SIGKILL);
  const std::string dead = std::to_string(first.process()), living = std::to_string(getpid());
  first.end(SIGKILL);
  for (const std::string& name :
       {"report.html.part-" + dead, "train/metrics.jsonl.part-" + dead,
        "train/events.out.tfevents.medusa.part-" + dead, "report.html.part-" + living})
    write_text(place_ / ("runs/tiny/" + name), "half");
  fs::create_directories(place_ / "runs/tiny/train/checkpoint-00000007.partial");
  std::string again;
  for (const std::string& word : train) again += word + " ";
  const ProcessResult ran = place_.run(again);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("runs/tiny: taken over from medusa train (process " + dead + " on "),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(litter_in(place_ / "runs"), std::vector<std::string>{"report.html.part-" + living});
}

TEST_F(RunLock, ATrainingKilledAtAnyTimeReportsEveryStepOnceAndEndsWithTheSameHeads) {
  const auto train = [](const std::string& run) {
    return std::vector<std::string>{"train",
                                    "--config",
                                    "run.yaml",
                                    "--set",
                                    "train.epochs=20",
                                    "--set",
                                    "train.report_every=1",
                                    "--set",
                                    "train.checkpoint_every=7",
                                    "--set",
                                    "train.data=[runs/tiny/dataset]",
                                    "--set",
                                    "run=" + run};
  };
  const auto finish = [&](const std::string& run) {
    std::string line;
    for (const std::string& word : train(run)) line += "'" + word + "' ";
    const ProcessResult ran = place_.run(line);
    ASSERT_EQ(ran.status, 0) << ran.err;
  };
  finish("runs/whole");
  const auto whole = reports_in(place_ / "runs/whole/train/metrics.jsonl");
  ASSERT_GT(whole.size(), 70U);
  for (const size_t after : {3U, 12U, 25U, 40U, 62U}) {
    Started run(place_, train("runs/killed"));
    ASSERT_TRUE(wait_for_reports(place_ / "runs/killed/train/metrics.jsonl", after));
    run.end(SIGKILL);
  }
  finish("runs/killed");
  EXPECT_EQ(reports_in(place_ / "runs/killed/train/metrics.jsonl"), whole);
  EXPECT_EQ(file_text(place_ / "runs/killed/heads/heads.safetensors"),
            file_text(place_ / "runs/whole/heads/heads.safetensors"));
  EXPECT_TRUE(litter_in(place_ / "runs").empty());
}

}  // namespace
}  // namespace medusa::cli
