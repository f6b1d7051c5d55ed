// The programs of examples/, run as a reader of the guide does.
#include <algorithm>

#include "chat_model.h"
#include "program.h"

namespace medusa::cli {
namespace {

class Examples : public testing::Test {
 protected:
  Examples() { write_chat_model(place_ / "model.gguf"); }

  /// @param arguments  of example_<name>, as typed in a shell.
  ProcessResult run(const std::string& name, const std::string& arguments) const {
    write_text(place_ / "input", "Once upon a time\nThe dog\n");
    const std::string command = "cd '" + (place_ / ".").string() + "' && '" MEDUSA_EXAMPLES "_" +
                                name + "' " + arguments + " <input >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), file_text(place_ / "out.txt"), file_text(place_ / "err.txt")};
  }

  CliFixture place_;
};

TEST_F(Examples, GenerateWritesWhatTheProgramWrites) {
  const ProcessResult program =
      place_.run("generate model.gguf 'Once upon a time' --drafter none --threads 1");
  ASSERT_EQ(program.status, 0) << program.err;
  const ProcessResult example = run("generate", "model.gguf 'Once upon a time'");
  EXPECT_EQ(example.status, 0);
  EXPECT_EQ(example.out, program.out);
  EXPECT_EQ(example.err, "") << "a library prints nothing";
}

TEST_F(Examples, GenerateTakesHeadsAndTree) {
  const std::string model =
      " --model model.gguf --config run.yaml --set backbone.chat_template=null";
  for (const char* stage : {"distill", "train", "calibrate"}) {
    const ProcessResult ran = place_.run(stage + model);
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  const ProcessResult plain = run("generate", "model.gguf 'Once upon a time'");
  const ProcessResult drafted =
      run("generate", "model.gguf 'Once upon a time' runs/tiny/heads runs/tiny/tree.yaml");
  EXPECT_EQ(drafted.status, 0) << drafted.err;
  EXPECT_EQ(drafted.out, plain.out);
  const ProcessResult missing =
      run("generate", "model.gguf 'Once upon a time' runs/none runs/tiny/tree.yaml");
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err.find("runs/none: "), 0U) << missing.err;
}

TEST_F(Examples, MistakesGiveTheProgramsMessage) {
  const ProcessResult program = place_.run("generate none.gguf 'Once upon a time'");
  const ProcessResult example = run("generate", "none.gguf 'Once upon a time'");
  EXPECT_EQ(example.status, 2);
  EXPECT_NE(program.err.find("medusa: " + example.err), std::string::npos)
      << program.err << example.err;
}

TEST_F(Examples, ChatAnswersEachLineInItsConversation) {
  const ProcessResult ran = run("chat", "model.gguf");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_GE(std::count(ran.out.begin(), ran.out.end(), '\n'), 2);
  EXPECT_EQ(ran.out, run("chat", "model.gguf").out) << "a seed's text is the same again";
}

TEST_F(Examples, AnOwnDrafterSavesPassesAndKeepsTheText) {
  const ProcessResult plain = run("generate", "model.gguf 'Once upon a time'");
  const ProcessResult drafted = run("own_drafter", "model.gguf 'Once upon a time'");
  EXPECT_EQ(drafted.status, 0) << drafted.err;
  EXPECT_EQ(drafted.out, plain.out);
  int tokens = 0, passes = 0;
  ASSERT_EQ(std::sscanf(drafted.err.c_str(), "%d tokens in %d passes", &tokens, &passes), 2)
      << drafted.err;
  EXPECT_LT(passes, tokens);
}

// What the library makes the program reads, and answers the same.
TEST_F(Examples, TrainHeadsGoesFromQuestionsToHeadsThatDraft) {
  const ProcessResult trained = run("train_heads", "model.gguf prompts.jsonl made");
  ASSERT_EQ(trained.status, 0) << trained.err;
  for (const char* stage :
       {"load: ", "distill: ", "train: ", "validation, step ", "count drafts: ", "time steps: "})
    EXPECT_NE(trained.err.find(stage), std::string::npos) << stage << trained.err;
  const ProcessResult plain = run("generate", "model.gguf 'Once upon a time'");
  EXPECT_EQ(trained.out, plain.out);
  const ProcessResult drafted =
      run("generate", "model.gguf 'Once upon a time' made/heads made/tree.yaml");
  EXPECT_EQ(drafted.out, plain.out) << drafted.err;
  const ProcessResult program = place_.run(
      "generate model.gguf 'Once upon a time' --heads made/heads --tree made/tree.yaml --threads "
      "1");
  EXPECT_EQ(program.out, plain.out) << program.err;
  const std::string heads = file_text(place_ / "made/heads/heads.safetensors");
  EXPECT_EQ(run("train_heads", "model.gguf prompts.jsonl made").status, 0);
  EXPECT_EQ(file_text(place_ / "made/heads/heads.safetensors"), heads) << "a finished run is kept";
}

TEST(ExampleSources, NeedOneHeaderAndGenerateIsThirtyLines) {
  const std::filesystem::path folder = MEDUSA_SOURCE_DIR "/examples";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp") continue;
    ++files;
    const std::string text = file_text(entry.path());
    EXPECT_EQ(text.find("#include \""), std::string::npos) << entry.path();
    EXPECT_NE(text.find("#include <medusa/medusa.h>\n"), std::string::npos) << entry.path();
  }
  EXPECT_GE(files, 3);
  const std::string generate = file_text(folder / "generate.cpp");
  EXPECT_LE(std::count(generate.begin(), generate.end(), '\n'), 30);
}

}  // namespace
}  // namespace medusa::cli
