// Standard streams that are closed, full, or read by nobody any more.
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "started_program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

const char* const kNull = "/dev/null";

std::string lost(const std::string& why) {
  return "medusa: standard output: " + why +
         ", expected a terminal, file or pipe that takes all that is printed; free some space or "
         "send it elsewhere, to /dev/null if nobody needs it, and run again\n";
}
const std::string kFull = lost("what was printed is cut off (No space left on device)");
const std::string kIsClosed = lost("it is closed");

/// The last thing that was said: "medusa: …\n".
std::string last_error(const std::string& err) {
  const size_t at = err.rfind("medusa: ");
  return at == std::string::npos ? "(none) " + err : err.substr(at);
}

/// Runs it with stdout as given. @returns its status and what it said.
ProcessResult run_with_stdout(const CliFixture& place, const Words& arguments, int out,
                              sighandler_t of_writing = SIG_DFL) {
  const Descriptor in(kNull, O_RDONLY);
  const Descriptor err(place / "err.txt", O_WRONLY | O_CREAT | O_TRUNC);
  StartedProgram program(place, arguments, {in.number(), out, err.number()}, of_writing);
  const int status = program.wait();
  return {status, "", file_text(place / "err.txt")};
}

/// @param out  full, or kClosed.
void expect_lost_output_is_told(const CliFixture& place, const Words& arguments, int out) {
  const ProcessResult ran = run_with_stdout(place, arguments, out);
  std::string line;
  for (const std::string& word : arguments) line += word + " ";
  EXPECT_EQ(ran.status, 2) << line;
  EXPECT_EQ(last_error(ran.err), out == kClosed ? kIsClosed : kFull) << line;
}

TEST(Streams, HelpAndScriptsThatAreLostAreAnError) {
  const CliFixture place;
  const Descriptor full("/dev/full", O_WRONLY);
  for (const int out : {full.number(), kClosed})
    for (const Words& arguments :
         std::vector<Words>{{"--help"}, {"train", "--help"}, {"completion", "bash"}})
      expect_lost_output_is_told(place, arguments, out);
}

class StreamsOfARun : public TrainedRun {};

TEST_F(StreamsOfARun, EveryCommandSaysWhenItsOutputIsLost) {
  const auto of_run = [](Words words) {
    words.insert(words.begin() + 1, {"--config", "run.yaml"});
    return words;
  };
  const Descriptor full("/dev/full", O_WRONLY);
  const Words generate = of_run({"generate", "--prompt", "Once"});
  for (const Words& arguments :
       std::vector<Words>{generate,
                          of_run({"generate", "--prompt", "Once", "--json"}),
                          of_run({"generate", "--questions", "prompts.jsonl"}),
                          of_run({"generate", "--prompt", "Once", "--compare"}),
                          {"inspect", "runs/tiny"},
                          {"inspect", "runs/tiny/heads", "--json"},
                          of_run({"report"}),
                          of_run({"train", "--json"}),
                          of_run({"train", "--dry-run"})})
    expect_lost_output_is_told(place_, arguments, full.number());
  expect_lost_output_is_told(place_, generate, kClosed);
}

TEST(Streams, AFileThatMayNotGrowIsAnError) {
  const CliFixture place;
  const Descriptor file(place / "out.txt", O_WRONLY | O_CREAT);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1024;  // bytes; the child's files, err.txt too, may not grow over it
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const ProcessResult ran = run_with_stdout(place, {"train", "--help"}, file.number());
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, lost("what was printed is cut off (File too large)"));
  EXPECT_EQ(std::filesystem::file_size(place / "out.txt"), 1024U);
}

TEST(Streams, AReaderThatGoesAwayEndsTheProgramQuietly) {
  const CliFixture place;
  const Descriptor unread = make_unread_pipe();
  for (const auto of_writing : {SIG_DFL, SIG_IGN}) {
    const ProcessResult ran =
        run_with_stdout(place, {"completion", "bash"}, unread.number(), of_writing);
    EXPECT_EQ(ran.status, 128 + SIGPIPE);
    EXPECT_EQ(ran.err, "");
  }
}

TEST(Streams, AnAnswerThatNobodyReadsOnIsNotDecodedToItsEnd) {
  const CliFixture place;
  write_text(place / "many.jsonl", [] {
    std::string lines;
    for (int i = 0; i < 2000; ++i) lines += "{\"text\": \"Once upon a time\"}\n";
    return lines;
  }());
  for (const auto of_writing : {SIG_DFL, SIG_IGN}) {
    Channel pipe = make_pipe();
    const Descriptor in(kNull, O_RDONLY);
    const Descriptor err(place / "err.txt", O_WRONLY | O_CREAT | O_TRUNC);
    StartedProgram program(
        place,
        {"generate", "--config", "run.yaml", "--questions", "many.jsonl", "--drafter", "none"},
        {in.number(), pipe.write.number(), err.number()}, of_writing);
    pipe.write.close();
    char first = 0;
    EXPECT_EQ(::read(pipe.read.number(), &first, 1), 1);
    pipe.read.close();
    EXPECT_EQ(program.wait(), 128 + SIGPIPE);
    const std::string said = file_text(place / "err.txt");
    EXPECT_EQ(said.find("medusa: "), std::string::npos) << said;
    EXPECT_LT(std::count(said.begin(), said.end(), '\n'), 1500) << "ends early";
  }
}

TEST_F(StreamsOfARun, AReaderOfProgressThatGoesAwayDoesNotEndTheRun) {
  const Descriptor in(kNull, O_RDONLY), unread = make_unread_pipe();
  const auto run = [&](const Words& words, int out) {
    return StartedProgram(place_, words, {in.number(), out, unread.number()}).wait();
  };
  const Descriptor null(kNull, O_WRONLY);
  const std::string data = "train.data=[runs/tiny/dataset]";
  EXPECT_EQ(run({"distill", "--config", "run.yaml", "--set", "run=runs/b"}, null.number()), 0);
  EXPECT_EQ(run({"train", "--config", "run.yaml", "--set", "run=runs/b"}, null.number()), 0);
  EXPECT_EQ(file_text(place_ / "runs/b/heads/heads.safetensors"),
            file_text(place_ / "runs/tiny/heads/heads.safetensors"));
  // What is printed in the end is lost, but nothing that it tells of.
  EXPECT_EQ(run({"train", "--config", "run.yaml", "--set", "run=runs/c", "--set", data, "--json"},
                unread.number()),
            128 + SIGPIPE);
  EXPECT_TRUE(std::filesystem::exists(place_ / "runs/c/heads/DONE"));
  EXPECT_TRUE(std::filesystem::exists(place_ / "runs/c/report.html"));
}

TEST_F(StreamsOfARun, FilesDoNotTakeThePlaceOfClosedStreams) {
  const Descriptor null(kNull, O_RDWR);
  const std::vector<std::array<int, 3>> closed = {{null.number(), null.number(), kClosed},
                                                  {kClosed, kClosed, kClosed}};
  for (size_t i = 0; i < closed.size(); ++i) {
    const std::string run = "runs/closed-" + std::to_string(i);
    StartedProgram train(place_,
                         {"train", "--config", "run.yaml", "--set", "run=" + run, "--set",
                          "train.data=[runs/tiny/dataset]"},
                         closed[i]);
    EXPECT_EQ(train.wait(), 0) << i;
    std::istringstream lines(file_text(place_ / (run + "/train/metrics.jsonl")));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count)
      EXPECT_TRUE(json::accept(line)) << i << ": " << line;
    EXPECT_GT(count, 0);
    EXPECT_EQ(file_text(place_ / (run + "/heads/heads.safetensors")),
              file_text(place_ / "runs/tiny/heads/heads.safetensors"))
        << i;
  }
}

}  // namespace
}  // namespace medusa::cli
