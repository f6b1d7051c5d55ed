// Runs the executable as a user does, and keeps what it printed.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "../base/temp_folder.h"

namespace medusa::cli {

struct ProcessResult {
  int status = -1;  // exit status; 128 + signal when killed
  std::string out;
  std::string err;
};

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// A folder with a run's YAML over the tiny trained model; commands run inside it.
class CliFixture {
 public:
  CliFixture() {
    write_text(folder_ / "run.yaml",
               "run: runs/tiny\nseed: 3\nbackbone:\n  model: " + model() +
                   "\n  threads: 1\n  context: 256\n  chat_template: plain\n"
                   "distill:\n  prompts: [prompts.jsonl]\n  max_new_tokens: 24\n  batch: 4\n  "
                   "shard_samples: 4\n"
                   "train:\n  epochs: 2\n  batch_positions: 64\n  warmup_steps: 2\n  "
                   "validation_fraction: 0.25\n"
                   "  checkpoint_every: 3\n  heads:\n    num_heads: 2\n    output: shared\n"
                   "calibrate:\n  top_k: 5\n  nodes: 6\n  context: 32\n  repeats: 3\n"
                   "  race_prompts: 0\n"  // which drafter wins is chance on so small a model
                   "generate:\n  max_new_tokens: 24\n");
    std::string prompts;
    for (const char* start : {"Once upon a time", "Lily and Tom", "The big dog", "One day, a boy",
                              "Mom said", "In the park", "A little bird", "The sun was",
                              "Tim had a red", "There was a cat", "Sam liked to", "At night"})
      prompts += std::string("{\"text\": \"") + start + "\"}\n";
    write_text(folder_ / "prompts.jsonl", prompts);
  }

  /// Made by tools/dev/make_tiny_model.py.
  static std::string model() { return MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf"; }

  /// @param arguments  as typed in a shell.
  ProcessResult run(const std::string& arguments) const { return run_with("", arguments); }

  /// Sends the signal after so many seconds, once, if the program still runs.
  ProcessResult run_until(const std::string& signal, double seconds,
                          const std::string& arguments) const {
    // In the foreground: else timeout signals the whole group, too, and a second Ctrl-C is another.
    return run_with(
        "timeout --foreground --preserve-status -s " + signal + " " + std::to_string(seconds) + " ",
        arguments);
  }

  /// Sends SIGINT so many seconds after a line that begins so, if the program still runs.
  ProcessResult interrupt_after(const std::string& line, double seconds,
                                const std::string& arguments) const {
    // The program gets the number of the shell that it takes the place of.
    return run_with("sh -c '(while kill -0 $$ 2>/dev/null; do grep -q \"^" + line +
                        "\" err.txt && sleep " + std::to_string(seconds) +
                        " && kill -INT $$ && exit; sleep 0.02; done) & exec \"$@\"' sh ",
                    arguments);
  }

  /// With environment variables, "NAME=value ".
  ProcessResult run_as(const std::string& variables, const std::string& arguments) const {
    return run_with("env " + variables, arguments);
  }

  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// Behind the words of another program that starts ours, "mpirun -n 2 ".
  ProcessResult run_with(const std::string& before, const std::string& arguments) const {
    const std::string command = "cd '" + folder_.path().string() + "' && " + before +
                                "'" MEDUSA_BINARY "' " + arguments +
                                " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            file_text(folder_ / "out.txt"), file_text(folder_ / "err.txt")};
  }

 private:
  fixtures::TempFolder folder_;
};

/// A run with a dataset, trained heads and a tree.
class TrainedRun : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* stage : {"distill", "train", "calibrate"}) {
      const ProcessResult ran = place_.run(std::string(stage) + " --config run.yaml");
      ASSERT_EQ(ran.status, 0) << ran.err;
    }
  }

  CliFixture place_;
};

/// A run with a dataset.
class DistilledRun : public testing::Test {
 protected:
  void SetUp() override {
    const ProcessResult ran = place_.run("distill --config run.yaml");
    ASSERT_EQ(ran.status, 0) << ran.err;
  }

  CliFixture place_;
};

}  // namespace medusa::cli
