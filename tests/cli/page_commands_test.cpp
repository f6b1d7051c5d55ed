// The commands that README and guides print, run on the tiny model. Those that need a server,
// a GPU, other people's heads or several processes are parsed only (tests/tools/command_line_test).
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
    "train.validation_fraction=0.25 --set calibrate.nodes=4 --set calibrate.context=32 --set "
    "calibrate.repeats=3 --set generate.max_new_tokens=8";

/// Lines of the page's code blocks that call the program, without their comments.
std::vector<std::string> command_lines(const fs::path& page) {
  std::istringstream lines(slurp(page));
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
  for (const char* part : {"medusa serve", "medusa import", "dataset merge", "dataset import",
                           "--shard", "train.data=", "$tuned", "$run", "configs/demo", "torchrun ",
                           "mpirun ", "srun ", "cuda", " > ~", "--backbone"})
    if (line.find(part) != std::string::npos) return false;
  return true;
}

class PageCommands : public testing::TestWithParam<const char*> {};

TEST_P(PageCommands, Run) {
  const Workplace place;
  write_chat_model(place / "models/my-llama.gguf");
  fs::create_directory_symlink(MEDUSA_SOURCE_DIR "/configs", place / "configs");
  spill(place / "my_prompts.jsonl", slurp(place / "prompts.jsonl"));
  const std::string page = GetParam();
  if (page != "docs/guide/own-model.md" && page != "README.md") {  // these two begin with nothing
    spill(place / "my.yaml", "run: runs/my\nbackbone: {model: models/my-llama.gguf}\n");
    const Ran ran =
        place.run(std::string("run --config my.yaml --questions prompts.jsonl") + kSmall);
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  int count = 0;
  for (const std::string& line : command_lines(fs::path(MEDUSA_SOURCE_DIR) / page)) {
    if (!can_run(line)) continue;
    const size_t at = line.find("build/release/medusa ");
    std::string command = line.substr(0, at) + "'" MEDUSA_BINARY "' " + line.substr(at + 21);
    const std::string name = line.substr(at + 21, line.find(' ', at + 21) - at - 21);
    if (name != "inspect" && name != "init" && name != "doctor" && name != "completion")
      command += kSmall;
    const std::string shell =
        "cd '" + (place / ".").string() + "' && { " + command + "; } >out.txt 2>err.txt </dev/null";
    const int status = std::system(shell.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << line << "\n" << slurp(place / "err.txt");
    ++count;
  }
  EXPECT_GT(count, 0);
}

INSTANTIATE_TEST_SUITE_P(Pages, PageCommands,
                         testing::Values("README.md", "docs/guide/own-model.md",
                                         "docs/guide/train.md", "docs/guide/import-export.md"));

}  // namespace
}  // namespace medusa::cli
