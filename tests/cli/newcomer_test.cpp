// A model file and nothing else: what a newcomer types first.
#include <nlohmann/json.hpp>

#include "chat_model.h"
#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

/// A folder with a model that knows its chat template, and small settings to append.
class Newcomer : public testing::Test {
 protected:
  Newcomer() { write_chat_model(place_ / "model.gguf"); }

  ProcessResult run(const std::string& arguments) const { return place_.run(arguments); }

  ProcessResult with_input(const std::string& input, const std::string& arguments) const {
    write_text(place_ / "input", input);
    const std::string command = "cd '" + (place_ / ".").string() + "' && '" MEDUSA_BINARY "' " +
                                arguments + " <input >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), file_text(place_ / "out.txt"), file_text(place_ / "err.txt")};
  }

  static constexpr const char* kSmall =
      " --threads 1 --set backbone.context=256 --set distill.prompts=[prompts.jsonl] --set "
      "distill.max_new_tokens=24 --set distill.shard_samples=4 --set train.batch_positions=64 "
      "--set train.heads.num_heads=2 --set train.heads.output=shared --set "
      "train.validation_fraction=0.25 --set calibrate.nodes=4 "
      "--set calibrate.context=32 --set calibrate.repeats=3 --set generate.max_new_tokens=12";

  CliFixture place_;
};

TEST_F(Newcomer, GeneratesWithoutSettings) {
  const ProcessResult ran =
      run("generate model.gguf 'Once upon a time' --max-tokens 8 --threads 1");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_GT(ran.out.size(), 5U);
  EXPECT_NE(ran.err.find("note: runs/model has no trained heads, so decoding is plain; this makes "
                         "them: "),
            std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("medusa run model.gguf --threads 1"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs"));
  // The same by other ways to say it.
  const std::string rest = " --max-tokens 8 --threads 1 --drafter none";
  EXPECT_EQ(run("generate --model model.gguf 'Once upon a time'" + rest).out, ran.out);
  EXPECT_EQ(run("generate --model model.gguf --prompt 'Once upon a time'" + rest).out, ran.out);
  EXPECT_EQ(with_input("Once upon a time\n", "generate model.gguf -" + rest).out, ran.out);
  EXPECT_EQ(run("generate model.gguf 'Once upon a time' --drafter prompt_lookup --max-tokens 8 "
                "--threads 1")
                .out,
            ran.out);
}

TEST_F(Newcomer, PromptsAreReadBeforeAnythingElseIsSaid) {
  for (const char* wrong : {"--questions none.jsonl", "--prompt 'caf\xe9'", ""}) {
    const ProcessResult ran = run(std::string("generate model.gguf ") + wrong);
    EXPECT_EQ(ran.status, 2) << wrong;
    EXPECT_EQ(ran.err.find("note: "), std::string::npos) << ran.err;
  }
  write_text(place_ / "turns.jsonl", R"({"turns": ["Once", "And then?"]})"
                                     "\n"
                                     R"({"turns": ["The dog"]})"
                                     "\n"
                                     R"({"turns": ["Tom", "Why?", "Who?"]})"
                                     "\n");
  const std::string ask = "generate model.gguf --questions turns.jsonl --max-tokens 2 --threads 1";
  EXPECT_EQ(run(ask).err.find("note: 2 of 3 prompts have later turns, which are not answered here; "
                              "medusa bench asks them, too\n"),
            0U);
  EXPECT_EQ(run(ask + " --limit 1").err.find("note: 1 of 1 prompts"), 0U);
  const std::string of_distill =
      "distill model.gguf --questions turns.jsonl --max-tokens 2 --run t";
  const std::string of_quality =
      "quality model.gguf --questions turns.jsonl --dtypes bfloat16 --max-tokens 2 --threads 1";
  for (const std::string& command : {of_distill, of_quality})
    EXPECT_NE(run(command).err.find("note: 2 of 3 prompts have later turns"), std::string::npos)
        << command;
  write_text(place_ / "turns.jsonl", R"({"turns": ["Once"]})"
                                     "\n");
  EXPECT_EQ(run(ask).err.find("later turns"), std::string::npos);
  write_text(place_ / "turns.jsonl", R"({"conversations": [{"from": "human", "value": "Once"}]})"
                                     "\n"
                                     R"({"conversations": [{"from": "nobody", "value": "a"}]})"
                                     "\n");
  EXPECT_NE(run(ask).err.find("turns.jsonl: 1 conversations without a user's message are skipped"),
            std::string::npos);
}

TEST_F(Newcomer, PromptsMayBeLinesAndOfOtherKeys) {
  write_text(place_ / "p.txt", "Once upon a time\nThe dog\n");
  write_text(place_ / "p.jsonl",
             "{\"prompt\": \"Once upon a time\"}\n{\"instruction\": \"The dog\"}\n");
  const std::string rest = " --json --max-tokens 6 --threads 1 --drafter none";
  const auto texts = [](const ProcessResult& ran) {
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::vector<std::string> out;
    const json parsed = json::parse(ran.out);
    for (const json& answer : parsed.at("answers")) out.push_back(answer.at("text"));
    return out;
  };
  const auto lines = texts(run("generate model.gguf --questions p.txt" + rest));
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_EQ(texts(run("generate model.gguf --questions p.jsonl" + rest)), lines);
  EXPECT_EQ(
      texts(with_input(file_text(place_ / "p.txt"), "generate model.gguf --questions -" + rest)),
      lines);
  EXPECT_EQ(texts(run("generate model.gguf --questions p.txt --batch 2" + rest)), lines)
      << "answered together";
}

TEST_F(Newcomer, RunDoesEveryStageAndContinues) {
  // train has no --context
  const ProcessResult first =
      run(std::string("run model.gguf --context 250 --questions prompts.jsonl") + kSmall);
  ASSERT_EQ(first.status, 0) << first.err;
  for (const char* part :
       {"run folder: runs/model (--run names another)", "[1/4] distill",
        "distill: at most 12 prompts, ", "[2/4] train", "heads: ", " million trained parameters, ",
        "heads with input 'root' run in medusa only", "[3/4] calibrate\n", "[4/4] generate",
        "medusa generate model.gguf"})
    EXPECT_NE(first.err.find(part), std::string::npos) << part << "\n" << first.err;
  EXPECT_EQ(first.err.find("next: "), first.err.rfind("next: ")) << "only in the end";
  EXPECT_NE(first.out.find("medusa, typical at 0.7"), std::string::npos) << first.out;
  const std::string heads = file_text(place_ / "runs/model/heads/manifest.yaml");
  const std::string tree = file_text(place_ / "runs/model/tree.yaml");

  const ProcessResult again =
      run(std::string("run model.gguf --json --questions prompts.jsonl") + kSmall);
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(json::parse(again.out).contains("methods")) << again.out;
  EXPECT_NE(again.err.find("; 0 generated now"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("[3/4] calibrate: runs/model/tree.yaml is there"), std::string::npos);
  EXPECT_EQ(file_text(place_ / "runs/model/heads/manifest.yaml"), heads);
  EXPECT_EQ(file_text(place_ / "runs/model/tree.yaml"), tree);

  // A tree without heads fits any, and is the user's.
  const std::string own_tree =
      "format: medusa-choice-tree\nversion: 1\ntop_k: 2\nnodes:\n  - [0]\n  - [1]\n";
  write_text(place_ / "own.yaml", own_tree);
  const ProcessResult own =
      run(std::string("run model.gguf --tree own.yaml --questions prompts.jsonl") + kSmall);
  ASSERT_EQ(own.status, 0) << own.err;
  EXPECT_EQ(file_text(place_ / "own.yaml"), own_tree);

  int refusals = 0;  // which of them auto is depends on the CPU
  for (const std::string dtype : {"float32", "bfloat16"}) {
    const ProcessResult other = run("train model.gguf --dtype " + dtype + kSmall);
    EXPECT_EQ(other.err.find("is not finished"), std::string::npos);
    if (other.status == 0) continue;
    ++refusals;
    EXPECT_NE(other.err.find("made with"), std::string::npos) << other.err;
    EXPECT_NE(other.err.find("backbone.dtype"), std::string::npos) << other.err;
  }
  EXPECT_EQ(refusals, 1);

  const std::string progress = file_text(place_ / "runs/model/train/metrics.jsonl");
  const ProcessResult refused =
      run(std::string("train /dev/zero --run runs/model --fresh") + kSmall);
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_EQ(file_text(place_ / "runs/model/train/metrics.jsonl"), progress)
      << "nothing is removed where nothing can begin";

  std::filesystem::remove(place_ / "runs/model/dataset/shard-00002.h5");
  EXPECT_NE(
      run(std::string("train model.gguf --dry-run") + kSmall)
          .err.find("note: the dataset is not finished, found 8 answers; medusa distill goes"),
      std::string::npos);

  const ProcessResult fresh =
      run(std::string("train model.gguf --fresh --set train.epochs=1") + kSmall);
  ASSERT_EQ(fresh.status, 0) << fresh.err;
  EXPECT_NE(file_text(place_ / "runs/model/heads/manifest.yaml"), heads);
}

TEST_F(Newcomer, EveryStageSaysWhatComesNext) {
  const std::string small = std::string(" model.gguf --run runs/x") + kSmall;
  const auto next = [&](const std::string& command) {
    const ProcessResult ran = run(command + small);
    EXPECT_EQ(ran.status, 0) << ran.err;
    const size_t at = ran.err.rfind("next: ");
    if (at == std::string::npos) return std::string();
    const std::string line = ran.err.substr(at, ran.err.find('\n', at) - at);
    return line.substr(std::min(line.find("medusa "), line.size()));
  };
  const auto begins = [](const std::string& line, const std::string& start) {
    EXPECT_TRUE(line.starts_with(start + " model.gguf ")) << line;
    EXPECT_NE(line.find(" --run runs/x"), std::string::npos) << line;
  };
  begins(next("distill"), "medusa train");
  begins(next("train"), "medusa calibrate");
  begins(next("calibrate"), "medusa generate");
}

TEST_F(Newcomer, WhatIsMissingIsToldBeforeTheModelIsLoaded) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const ProcessResult ran = run(arguments);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\n" << ran.err;
    EXPECT_EQ(ran.err.find("load  "), std::string::npos) << "nothing is loaded\n" << ran.err;
  };
  refused("generate model.gguf hi --drafter medusa",
          "runs/model/heads: not found, expected trained heads; make them with medusa train");
  refused("generate model.gguf --compare", "runs/model/heads: not found");
  refused("bench model.gguf --methods medusa,blockwise", "runs/model/heads: not found");
  refused("bench model.gguf --questions none.jsonl --methods none", "none.jsonl: no such file");
  refused("generate model.gguf", "generate: no prompt given, expected one behind the model");
  refused("generate model.gguf --questions none.jsonl", "none.jsonl: no such file");
  refused("distill model.gguf --questions none.jsonl", "none.jsonl: no such file");
  refused("run model.gguf --questions none.jsonl", "none.jsonl: no such file");
  refused("run model.gguf", "heads: 'output_size' is 8192, the backbone's vocabulary has");
  refused("calibrate model.gguf", "runs/model/dataset: no such folder");
  refused("serve model.gguf --host 192.0.2.1",
          "--host 192.0.2.1 --port 8080: cannot be listened on");
  refused("serve model.gguf --host here", "--host is 'here', expected an address in numbers");
  refused("serve model.gguf --cors a/b", "--cors is 'a/b', expected an origin");
  refused("serve model.gguf --api-keys none", "--api-keys none: no such file");
  refused("serve model.gguf --log no/where", "--log no/where: cannot be written");
  refused("serve model.gguf --log-prompts", "--log-prompts: no log is written");
  refused("quality model.gguf --questions none.jsonl", "none.jsonl: no such file");
  refused("generate model.gguf hi --drafter retrieval", "build it with medusa build-store");
  refused("generate model.gguf hi --drafter draft_model", "make one with medusa make-draft");
}

TEST_F(Newcomer, InitWritesSettingsOnce) {
  const ProcessResult ran = run("init model.gguf");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "settings: model.yaml\n");
  EXPECT_NE(ran.err.find("medusa run --config model.yaml"), std::string::npos) << ran.err;
  const std::string text = file_text(place_ / "model.yaml");
  EXPECT_EQ(run("generate --config model.yaml hi --max-tokens 2 --threads 1").status, 0);
  const ProcessResult again = run("init model.gguf");
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("model.yaml: exists already"), std::string::npos) << again.err;
  EXPECT_EQ(file_text(place_ / "model.yaml"), text);
  // Every key that is commented out is a setting.
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t mark = line.find_first_not_of(' ');
    if (mark != std::string::npos && line[mark] == '#' && line[mark + 1] != ' ')
      line.erase(mark, 1);
    all += line + "\n";
  }
  write_text(place_ / "all.yaml", all);
  const ProcessResult inspected = run("inspect all.yaml");
  EXPECT_EQ(inspected.status, 0) << inspected.err << all;
}

}  // namespace
}  // namespace medusa::cli
