// Inputs and outputs that are not what a command wants: whatever they are, the command ends soon,
// with exit code 2 and a message that says what to do, and destroys nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "program.h"

namespace medusa::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 30;  // far above the promised 5, for a busy machine

/// A place where all kinds of things lie that are no good file.
class BadInputs : public testing::Test {
 protected:
  void SetUp() override {
    const auto at = [this](const std::string& name) { return place_ / name; };
    for (const char* fifo : {"fifo", "fifo.json"}) ::mkfifo(at(fifo).c_str(), 0600);
    fs::create_symlink("loop", at("loop"));
    fs::create_symlink("/dev/zero", at("zero"));
    fs::create_symlink("/dev/full", at("full"));
    fs::create_symlink("/dev/null", at("null"));
    fs::create_symlink("nowhere/at/all", at("dangling"));
    fs::create_directory(at("folder"));
    write_text(at("folder/cat.jpg"), "a cat");
    write_text(at("empty"), "");
    write_text(at("words"), "one two three\n");
    write_text(at("holes"), "");
    fs::resize_file(at("holes"), uintmax_t{1} << 40);
    write_text(at("bytes"), "\xff\xfe\x80\n");
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    at("socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
  }

  /// The names that no command can read a file from.
  static std::vector<std::string> unreadable() {
    std::string deep;
    for (int i = 0; i < 2100; ++i) deep += "p/";
    return {"fifo",     "loop",   "loop/x",  "zero",  "null",
            "dangling", "folder", "words/x", "empty", "socket",
            "holes",    "bytes",  "nowhere", deep,    std::string(300, 'n')};
  }

  /// Exit code 2, a message with something to do in it, in time.
  ProcessResult refused(const std::string& arguments) const {
    ProcessResult ran = place_.run_until("KILL", kSeconds, arguments);
    const std::string shown = arguments.substr(0, 120);
    EXPECT_EQ(ran.status, 2) << shown << "\n" << ran.err.substr(0, 2000);
    EXPECT_EQ(ran.err.find("this is a bug"), std::string::npos) << shown << "\n" << ran.err;
    const size_t last = ran.err.rfind("medusa: ");
    EXPECT_NE(last, std::string::npos) << shown << "\n" << ran.err;
    if (last == std::string::npos) return ran;
    EXPECT_NE(ran.err.find("; ", last), std::string::npos) << shown << "\n" << ran.err;
    return ran;
  }

  /// @param part  of the message.
  void refused(const std::string& arguments, const std::string& part) const {
    const ProcessResult ran = refused(arguments);
    EXPECT_NE(ran.err.find(part), std::string::npos) << arguments << "\n" << ran.err;
  }

  /// With this file as standard input.
  ProcessResult with_input(const std::string& file, const std::string& arguments) const {
    const std::string command =
        fmt::format("cd '{}' && timeout -s KILL {} '" MEDUSA_BINARY "' {} <{} >out.txt 2>err.txt",
                    (place_ / ".").string(), kSeconds, arguments, file);
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            file_text(place_ / "out.txt"), file_text(place_ / "err.txt")};
  }

  /// Names of the form that a file has while it is written.
  std::vector<std::string> left_over() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(place_ / "."))
      if (entry.path().filename().string().find(".part") != std::string::npos)
        names.push_back(entry.path().string());
    return names;
  }

  CliFixture place_;
};

TEST_F(BadInputs, SettingsFromWhatIsNoFile) {
  for (const std::string& name : unreadable()) refused("report --config '" + name + "'");
  refused("report --config fifo",
          "fifo: is a FIFO, expected a regular file; save what it gives to a file and name that");
  refused("report --config zero", "zero: is a device, expected a regular file");
  refused("report --config holes", "holes: holds more than");
}

TEST_F(BadInputs, ArtifactsThatAreNone) {
  for (const std::string& name : unreadable()) refused("inspect '" + name + "'");
}

TEST_F(BadInputs, ModelsThatAreNone) {
  for (const std::string& name : unreadable())
    refused("doctor words --no-measuring --backbone '" + name + "'");
}

TEST_F(BadInputs, RunFoldersThatAreNone) {
  for (const std::string& name : unreadable())
    if (name != "empty" && name != "folder")
      refused("report --config run.yaml --set 'run=" + name + "'");
}

// One wrong argument for each command, beside what its own tests have.
TEST_F(BadInputs, EveryCommandSaysWhatIsWrong) {
  write_text(place_ / "scalar.yaml", "just words\n");
  const std::string config = " --config run.yaml ";
  const std::string none = " --set backbone.model=fifo ";
  for (const std::string command :
       {"generate --prompt x", "distill", "calibrate", "bench --questions words", "profile",
        "quality --questions words", "import words", "export --format vllm --output new",
        "dataset export new", "dataset import words", "dataset merge words", "build-store",
        "make-draft", "train", "report"}) {
    refused(command + config + none);
    refused(command + " --config scalar.yaml");
  }
  refused("completion fifo");
  refused("doctor fifo --backbone fifo");
  refused("inspect loop", "loop: cannot be used (Too many levels of symbolic links)");
  refused("dataset import fifo" + config, "fifo: is a FIFO, expected a regular file");
  refused("generate --prompt x --threads 1000" + config,
          "that this process may use, expected at most as many threads");
  // Values that others replace.
  refused("generate --prompt x --set backbone.threads=nan --threads 1" + config,
          "--set backbone.threads=nan: 'threads' is 'nan', must be a whole number");
  refused("generate --prompt x --set generate.top_k=-5 --set generate.top_k=1" + config,
          "--set generate.top_k=-5: 'top_k' is -5, must be >= 0");
  refused("generate --prompt x --set 'generate.stop=[\"\"]'" + config,
          "generate.stop holds an empty text");
  refused("export --format vllm --output new --base-model \"$(printf '\\377')\"" + config,
          "--base-model: is not UTF-8");
  EXPECT_FALSE(fs::exists(place_ / "new"));
}

TEST_F(BadInputs, QuestionsThatAreNone) {
  const std::string generate = "generate --config run.yaml --set generate.drafter=none ";
  for (const char* name : {"loop", "zero", "folder", "socket", "holes", "bytes", "fifo.json"})
    refused(generate + "--questions " + name);
  refused(generate + "--json --prompt \"$(printf '\\377')\"", "--prompt: is not UTF-8");
  const ProcessResult endless = with_input("zero", generate + "--questions -");
  EXPECT_EQ(endless.status, 2);
  EXPECT_NE(endless.err.find("standard input: holds more than 1073741824 bytes, expected at most"),
            std::string::npos)
      << endless.err;
}

TEST_F(BadInputs, QuestionsMayComeFromAnotherProgram) {
  const std::string generate =
      "generate --config run.yaml --set generate.drafter=none --set generate.max_new_tokens=2 "
      "--limit 1 --questions ";
  const ProcessResult input = with_input("prompts.jsonl", generate + "-");
  EXPECT_EQ(input.status, 0) << input.err;
  std::thread writer([&] {
    const int out = ::open((place_ / "fifo").c_str(), O_WRONLY | O_CLOEXEC);  // waits for a reader
    const std::string text = file_text(place_ / "prompts.jsonl");
    EXPECT_EQ(::write(out, text.data(), text.size()), std::ssize(text));
    ::close(out);
  });
  const ProcessResult fifo = place_.run(generate + "fifo");
  EXPECT_EQ(fifo.status, 0) << fifo.err;
  EXPECT_EQ(fifo.out, input.out);
  writer.join();
}

/// A run folder for medusa report, which needs no model.
class BadOutputs : public BadInputs {
 protected:
  void SetUp() override {
    BadInputs::SetUp();
    fs::create_directories(place_ / "run/dataset");
    fs::create_directories(place_ / "run/train");
    fs::create_directories(place_ / "run/heads");
  }

  fs::path page() const { return place_ / "run/report.html"; }

  const std::string report_ = "report --config run.yaml --set run=run";
};

TEST_F(BadOutputs, PartsOfARunThatAreNoFilesAreLeftOut) {
  fs::create_symlink("metrics.jsonl", place_ / "run/train/metrics.jsonl");
  refused(report_, "run/train/metrics.jsonl: cannot be used");
  fs::remove(place_ / "run/train/metrics.jsonl");
  for (const char* name :
       {"run/tree.yaml", "run/compare.json", "run/train/metrics.jsonl",
        "run/dataset/shard-00000.h5", "run/heads/DONE", "run/heads/manifest.yaml"})
    ::mkfifo((place_ / name).c_str(), 0600);
  const ProcessResult ran = place_.run_until("KILL", kSeconds, report_);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(file_text(page()).find("is a FIFO, expected a regular file"), std::string::npos);
}

TEST_F(BadOutputs, NoReportLiesInAFolderThatIsNoRun) {
  write_text(place_ / "outside/precious.txt", "precious");
  refused("report --config run.yaml --run outside", "outside: holds nothing of a run, expected ");
  EXPECT_FALSE(fs::exists(place_ / "outside/report.html"));
}

TEST_F(BadOutputs, WhatIsNotOursIsNotReplaced) {
  write_text(page(), "<title>my thesis</title>");
  refused(report_, "run/report.html: holds something else, expected a file of the kind 'page'");
  EXPECT_EQ(file_text(page()), "<title>my thesis</title>");
  fs::remove(page());
  fs::create_directory(page());
  refused(report_, "run/report.html: is a folder, expected a file or nothing there");
  fs::remove(page());
  fs::rename(place_ / "socket", page());
  refused(report_, "run/report.html: is a socket");
  fs::remove(page());
  fs::create_symlink("report.html", page());
  refused(report_);
  EXPECT_TRUE(fs::is_symlink(page()));
  EXPECT_EQ(left_over(), std::vector<std::string>());
}

TEST_F(BadOutputs, DevicesAndLinksStayWhatTheyAre) {
  fs::create_symlink("/dev/null", page());
  EXPECT_EQ(place_.run(report_).status, 0);
  EXPECT_TRUE(fs::is_symlink(page()) && fs::is_character_file(page()));
  fs::remove(page());
  fs::create_symlink("../elsewhere.html", page());
  EXPECT_EQ(place_.run(report_).status, 0);
  EXPECT_TRUE(fs::is_symlink(page()));
  EXPECT_NE(file_text(place_ / "elsewhere.html").find("</html>"), std::string::npos);
  EXPECT_EQ(left_over(), std::vector<std::string>());
}

TEST_F(BadOutputs, NoRoomIsAnErrorAndLeavesNothing) {
  fs::create_symlink("/dev/full", page());
  refused(report_, "run/report.html: the disk is full; free some space");
  fs::remove(page());
  const ProcessResult ran = place_.run_as("sh -c 'ulimit -f 4; exec \"$@\"' sh ", report_);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(ran.err.find("run/report.html: grows larger than a file may here"), std::string::npos)
      << ran.err;
  EXPECT_FALSE(fs::exists(page()));
  EXPECT_EQ(left_over(), std::vector<std::string>());
}

TEST_F(BadOutputs, MemoryThatRunsOutIsNoBug) {
  write_text(place_ / "run/compare.json", "");
  fs::resize_file(place_ / "run/compare.json", uintmax_t{900} << 20);
  const ProcessResult ran = place_.run_as("sh -c 'ulimit -v 1000000; exec \"$@\"' sh ", report_);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_EQ(ran.err.find("medusa: memory: the machine or a limit (ulimit -v) gives no more of it"),
            0U)
      << ran.err;
}

/// The program in the place, started and not waited for.
pid_t start(const CliFixture& place, std::vector<const char*> arguments) {
  const pid_t program = ::fork();
  if (program != 0) return program;
  arguments.insert(arguments.begin(), "medusa");
  arguments.push_back(nullptr);
  if (::chdir((place / ".").c_str()) == 0)
    ::execv(MEDUSA_BINARY, const_cast<char**>(arguments.data()));
  ::_exit(127);
}

/// Looks again and again until it is so, or much too much time has passed.
template <typename Condition>
bool wait_until(const Condition& condition) {
  const auto end = Clock::now() + std::chrono::duration<double>(kSeconds);
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

void expect_ended_by(int signal, pid_t program) {
  ::kill(program, signal);
  int status = 0;
  EXPECT_TRUE(wait_until([&] { return ::waitpid(program, &status, WNOHANG) != 0; }));
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
}

TEST_F(BadOutputs, ASignalEndsTheWaitForAReader) {
  ::mkfifo(page().c_str(), 0600);
  const int reader = ::open(page().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const int room = ::fcntl(reader, F_SETPIPE_SZ, 4096);  // less than a page of pictures
  const pid_t program = start(place_, {"report", "--config", "run.yaml", "--set", "run=run"});
  EXPECT_TRUE(wait_until([&] {
    int held = 0;
    return ::ioctl(reader, FIONREAD, &held) == 0 && held == room;
  }));
  expect_ended_by(SIGTERM, program);
  EXPECT_TRUE(fs::is_fifo(page()));
  ::close(reader);
}

TEST_F(BadInputs, ASignalEndsTheWaitForQuestions) {
  const pid_t program = start(place_, {"generate", "--config", "run.yaml", "--set",
                                       "generate.drafter=none", "--questions", "fifo"});
  int writer = -1;  // which can be opened once the program reads
  EXPECT_TRUE(wait_until([&] {
    writer = ::open((place_ / "fifo").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return writer >= 0;
  }));
  expect_ended_by(SIGTERM, program);
  ::close(writer);
}

}  // namespace
}  // namespace medusa::cli
