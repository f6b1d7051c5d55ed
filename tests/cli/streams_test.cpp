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
Ran run_with_stdout(const Workplace& place, const Words& arguments, int out,
                    sighandler_t of_writing = SIG_DFL) {
  const Descriptor in(kNull, O_RDONLY);
  const Descriptor err(place / "err.txt", O_WRONLY | O_CREAT | O_TRUNC);
  StartedProgram program(place, arguments, {in.number(), out, err.number()}, of_writing);
  const int status = program.wait();
  return {status, "", slurp(place / "err.txt")};
}

void expect_lost_output_is_told(const Workplace& place, const Words& arguments) {
  std::string line;
  for (const std::string& word : arguments) line += word + " ";
  const Descriptor full("/dev/full", O_WRONLY);
  const Ran ran = run_with_stdout(place, arguments, full.number());
  EXPECT_EQ(ran.status, 2) << line;
  EXPECT_EQ(last_error(ran.err), kFull) << line;
  const Ran closed = run_with_stdout(place, arguments, kClosed);
  EXPECT_EQ(closed.status, 2) << line;
  EXPECT_EQ(last_error(closed.err), kIsClosed) << line;
}

TEST(Streams, HelpAndScriptsThatAreLostAreAnError) {
  const Workplace place;
  for (const Words& arguments :
       std::vector<Words>{{"--help"}, {"help"}, {"train", "--help"}, {"completion", "bash"}})
    expect_lost_output_is_told(place, arguments);
}

class StreamsOfARun : public TrainedRun {};

TEST_F(StreamsOfARun, AnswersThatAreLostAreAnError) {
  const Words generate{"generate", "--config", "run.yaml", "--prompt", "Once"};
  expect_lost_output_is_told(place_, generate);
  for (const Words& more :
       std::vector<Words>{{"--json"}, {"--questions", "prompts.jsonl"}, {"--compare"}}) {
    Words all = generate;
    all.insert(all.end(), more.begin(), more.end());
    expect_lost_output_is_told(place_, all);
  }
}

TEST_F(StreamsOfARun, EveryOtherCommandSaysWhenItsOutputIsLost) {
  const auto of_run = [](Words words) {
    words.insert(words.begin() + 1, {"--config", "run.yaml"});
    return words;
  };
  for (const Words& arguments : std::vector<Words>{
           {"inspect", "runs/tiny"},
           {"inspect", "runs/tiny/heads", "--json"},
           of_run({"report"}),
           of_run({"distill", "--json"}),
           of_run({"train", "--json"}),
           of_run({"train", "--dry-run"}),
           of_run({"calibrate", "--json"}),
           of_run({"calibrate", "--predict", "prompts.jsonl"}),
           of_run({"build-store", "--json"}),
           of_run({"bench", "--questions", "prompts.jsonl", "--methods", "none", "--limit", "1"}),
           of_run({"profile", "--rows", "1", "--contexts", "8", "--repeat", "1"}),
           of_run({"quality", "--questions", "prompts.jsonl", "--dtypes", "int8", "--limit", "1"}),
           of_run({"dataset", "export", "all.jsonl", "--json"}),
           {"doctor", "runs/tiny/heads", "--backbone", Workplace::model(), "--no-measuring"}})
    expect_lost_output_is_told(place_, arguments);
}

TEST(Streams, AFileThatMayNotGrowIsAnError) {
  const Workplace place;
  const Descriptor file(place / "out.txt", O_WRONLY | O_CREAT);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1024;  // bytes; the child's files, err.txt too, may not grow over it
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Ran ran = run_with_stdout(place, {"train", "--help"}, file.number());
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, lost("what was printed is cut off (File too large)"));
  EXPECT_EQ(std::filesystem::file_size(place / "out.txt"), 1024U);
}

TEST(Streams, AReaderThatGoesAwayEndsTheProgramQuietly) {
  const Workplace place;
  const Descriptor unread = make_unread_pipe();
  for (const auto of_writing : {SIG_DFL, SIG_IGN}) {
    const Ran ran = run_with_stdout(place, {"completion", "bash"}, unread.number(), of_writing);
    EXPECT_EQ(ran.status, 128 + SIGPIPE);
    EXPECT_EQ(ran.err, "");
  }
}

TEST(Streams, AnAnswerThatNobodyReadsOnIsNotDecodedToItsEnd) {
  MEDUSA_NEEDS_TINY_MODEL();
  const Workplace place;
  spill(place / "many.jsonl", [] {
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
    const std::string said = slurp(place / "err.txt");
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
  EXPECT_EQ(slurp(place_ / "runs/b/heads/heads.safetensors"),
            slurp(place_ / "runs/tiny/heads/heads.safetensors"));
  // What is printed in the end is lost, but nothing that it tells of.
  EXPECT_EQ(run({"train", "--config", "run.yaml", "--set", "run=runs/c", "--set", data, "--json"},
                unread.number()),
            128 + SIGPIPE);
  EXPECT_TRUE(std::filesystem::exists(place_ / "runs/c/heads/DONE"));
  EXPECT_TRUE(std::filesystem::exists(place_ / "runs/c/report.html"));
}

TEST_F(StreamsOfARun, FilesDoNotTakeThePlaceOfClosedStreams) {
  const Descriptor null(kNull, O_RDWR);
  const std::vector<std::array<int, 3>> closed = {
      {null.number(), null.number(), kClosed},
      {null.number(), kClosed, kClosed},
      {kClosed, kClosed, kClosed},
      {kClosed, null.number(), null.number()},
  };
  for (size_t i = 0; i < closed.size(); ++i) {
    const std::string run = "runs/closed-" + std::to_string(i);
    StartedProgram distill(place_, {"distill", "--config", "run.yaml", "--set", "run=" + run},
                           closed[i]);
    EXPECT_EQ(distill.wait(), 0) << i;
    StartedProgram train(place_, {"train", "--config", "run.yaml", "--set", "run=" + run},
                         closed[i]);
    EXPECT_EQ(train.wait(), 0) << i;
    std::istringstream lines(slurp(place_ / (run + "/train/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(json::accept(line)) << i << ": " << line;
    EXPECT_EQ(slurp(place_ / (run + "/heads/heads.safetensors")),
              slurp(place_ / "runs/tiny/heads/heads.safetensors"))
        << i;
    const Ran inspected = place_.run("inspect --json " + run);
    EXPECT_EQ(inspected.status, 0) << inspected.err;
  }
}

}  // namespace
}  // namespace medusa::cli
