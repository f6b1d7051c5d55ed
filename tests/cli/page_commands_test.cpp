// The commands that README and guides print, run on the tiny model. Those that need a GPU, other
// people's models and heads, or a launcher of processes are parsed only
// (tests/tools/command_line_test).
#include <algorithm>

#include "chat_model.h"
#include "program.h"

namespace medusa::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSmall =
    " --set backbone.threads=1 --set backbone.context=256 --set distill.prompts=[prompts.jsonl] "
    "--set distill.max_new_tokens=24 --set distill.shard_samples=4 --set train.epochs=1 --set "
    "train.batch_positions=64 --set train.heads.num_heads=2 --set train.heads.input=hidden --set "
    "train.heads.output=shared --set "
    "train.validation_fraction=0.25 --set calibrate.nodes=4 --set calibrate.context=32 --set "
    "calibrate.repeats=3";
constexpr const char* kShort = " --set generate.max_new_tokens=8";  // which serve does not read

/// Lines of the page's code blocks that call the program, without their comments.
std::vector<std::string> command_lines(const fs::path& page) {
  std::istringstream lines(file_text(page));
  std::vector<std::string> out;
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) in_block = !in_block;
    const size_t at = line.find("build/release/medusa ");
    if (!in_block || at == std::string::npos) continue;
    line = line.substr(0, line.find("  #"));
    out.push_back(line);
  }
  return out;
}

bool can_run(const std::string& line) {
  for (const char* part : {"medusa import", "$tuned", "$run", "configs/demo", "mpirun ", "srun ",
                           "torchrun ", "cuda", "--backbone", "--drafter eagle3"})
    if (line.find(part) != std::string::npos) return false;
  return true;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// The line for the shell, with what makes it small and what a reader has of his own.
std::string as_run(const std::string& line) {
  const size_t at = line.find("build/release/medusa ");
  std::string command = line.substr(0, at);
  const bool serves = has(line, "medusa serve");
  if (serves) command += "timeout --foreground --preserve-status -s INT 10 ";
  command += "'" MEDUSA_BINARY "' " + line.substr(at + 21);
  const std::string name = line.substr(at + 21, line.find(' ', at + 21) - at - 21);
  if (name != "inspect" && name != "init" && name != "doctor" && name != "completion")
    command += kSmall;
  if (serves)
    command += " --port 0";
  else if (has(command, kSmall))
    command += kShort;
  if (has(line, "--shard") || has(line, "dataset merge")) command += " --run runs/parts";
  if (has(line, "train.data="))
    command += has(line, "dataset-text") ? " --run runs/texts" : " --run runs/mixed";
  if (has(line, "dataset import")) command += " --run runs/imported";
  return command;
}

class PageCommands : public testing::TestWithParam<const char*> {};

TEST_P(PageCommands, Run) {
  const CliFixture place;
  write_chat_model(place / "models/my-llama.gguf");
  fs::create_directory_symlink(MEDUSA_SOURCE_DIR "/configs", place / "configs");
  write_text(place / "my_prompts.jsonl", file_text(place / "prompts.jsonl"));
  for (const char* folder :
       {".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"})
    fs::create_directories(place / folder);
  const std::string page = GetParam();
  if (page == "docs/guide/train.md" || page == "docs/guide/import-export.md") {
    write_text(place / "my.yaml", "run: runs/my\nbackbone: {model: models/my-llama.gguf}\n");
    const ProcessResult ran =
        place.run(std::string("run --config my.yaml --questions prompts.jsonl") + kSmall + kShort);
    ASSERT_EQ(ran.status, 0) << ran.err;
    for (const char* other : {"--run runs/a --seed 8", "--run runs/b --seed 9"})
      ASSERT_EQ(place.run(std::string("distill --config my.yaml ") + kSmall + " " + other).status,
                0);
    write_text(place / "answers.jsonl",
               R"({"messages": [{"role": "user", "content": "Once upon a time"}, )"
               R"({"role": "assistant", "content": "there was a dog."}]})"
               "\n");
    write_text(place / "chats.jsonl", file_text(place / "answers.jsonl"));
    write_text(place / "book.txt", "Once upon a time there was a little bird. It saw a big dog.");
  }
  int count = 0;
  for (const std::string& line : command_lines(fs::path(MEDUSA_SOURCE_DIR) / page)) {
    if (!can_run(line)) continue;
    const std::string shell = "cd '" + (place / ".").string() + "' && export HOME=$PWD && { " +
                              as_run(line) + "; } >out.txt 2>err.txt </dev/null";
    const int status = std::system(shell.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << line << "\n" << file_text(place / "err.txt");
    if (has(line, "medusa serve")) {
      EXPECT_TRUE(has(file_text(place / "out.txt"), "/v1/chat/completions")) << line;
    }
    ++count;
  }
  EXPECT_GT(count, 0);
}

INSTANTIATE_TEST_SUITE_P(Pages, PageCommands,
                         testing::Values("README.md", "docs/guide/own-model.md",
                                         "docs/guide/chat.md", "docs/guide/serving.md",
                                         "docs/guide/train.md", "docs/guide/import-export.md"));

}  // namespace
}  // namespace medusa::cli
