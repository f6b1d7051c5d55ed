// What a terminal would obey, in names and texts of others: it is shown, never sent.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "../base/gguf_builder.h"
#include "base/formats/safetensors_file.h"
#include "base/shown_text.h"
#include "started_program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

/// Sets the clipboard and the title, clears the screen, DEL, a color by C1, turned text, a script.
const std::string kEvil =
    "\x1b]52;c;ZXZpbA==\a\x1b]0;evil\x1b\\\x1b[2J\x7f\xC2\x9B"
    "31m\xE2\x80\xAEx\"'><script>&";

/// As YAML and JSON write it in quotes.
std::string quoted(const std::string& text) { return json(text).dump(-1, ' ', true); }

std::string concat(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += word + " ";
  return shown_text(line);
}

ProcessResult run(const CliFixture& place, const Words& words) {
  const Descriptor in("/dev/null", O_RDONLY);
  const Descriptor out(place / "out.txt", O_WRONLY | O_CREAT | O_TRUNC);
  const Descriptor err(place / "err.txt", O_WRONLY | O_CREAT | O_TRUNC);
  StartedProgram program(place, words, {in.number(), out.number(), err.number()});
  const int status = program.wait();
  return {status, file_text(place / "out.txt"), file_text(place / "err.txt")};
}

/// @returns what was printed on both streams.
std::string expect_harmless(const CliFixture& place, const Words& words, int status = 0) {
  const ProcessResult ran = run(place, words);
  const std::string said = ran.out + ran.err;
  EXPECT_EQ(ran.status, status) << concat(words) << said;
  EXPECT_EQ(said, shown_text(said)) << concat(words);
  return said;
}

/// As a person sees it: both streams are one terminal.
std::string on_terminal(const CliFixture& place, const Words& words) {
  Channel terminal = make_terminal();
  const Descriptor in("/dev/null", O_RDONLY);
  StartedProgram program(place, words,
                         {in.number(), terminal.write.number(), terminal.write.number()});
  terminal.write.close();
  std::string received = terminal.read.read_all();
  EXPECT_EQ(program.wait(), 0) << concat(words) << received;
  return received;
}

TEST(Terminal, FilesOfOthersAreInspectedWithoutHarm) {
  const CliFixture place;
  fixtures::GgufBuilder()
      .text("general.name", kEvil)
      .text(kEvil, "a key")
      .strings("names", {kEvil, "b"})
      .tensor(kEvil, {2}, {1, 2})
      .write(place / "evil.gguf");
  const std::vector<uint8_t> bytes(8, 0);
  write_safetensors(place / "evil.safetensors",
                    std::vector<SafetensorsEntry>{{kEvil, "F32", {2}, bytes}},
                    {{"made_by", kEvil}, {kEvil, "made by"}});
  write_text(place / "tree.yaml", "format: medusa-choice-tree\nversion: 1\ntop_k: 5\nsource: " +
                                      quoted(kEvil) + "\nnodes:\n  - [0]\n");
  write_text(place / "settings.yaml",
             "run: " + quoted(kEvil) + "\nbackbone:\n  model: " + quoted(kEvil) + "\n");
  write_text(place / (kEvil + ".jsonl"), json{{"id", kEvil}, {"text", kEvil}}.dump() + "\n");
  for (const std::string& file :
       Words{"evil.gguf", "evil.safetensors", "tree.yaml", "settings.yaml", kEvil + ".jsonl"})
    for (const bool as_json : {false, true}) {
      Words words{"inspect", file};
      if (as_json) words.emplace_back("--json");
      const std::string said = expect_harmless(place, words);
      if (as_json) {
        EXPECT_TRUE(json::accept(said)) << said;
        EXPECT_NE(said.find(R"(\u001b]52;c;ZXZpbA==)"), std::string::npos) << said;
      } else {
        EXPECT_NE(said.find(R"(\x1b]52;c;ZXZpbA==\x07)"), std::string::npos) << said;
        EXPECT_NE(said.find(R"(\x7f\u009b31m\u202ex)"), std::string::npos) << said;
      }
    }
  // JSON says the same as before, in other letters.
  const json found = json::parse(run(place, {"inspect", "--json", "evil.safetensors"}).out);
  EXPECT_EQ(found.at("metadata").at("made_by"), kEvil);
  // The terminal itself: the same bytes as a pipe, all of them harmless.
  const std::string received = on_terminal(place, {"inspect", "evil.gguf"});
  EXPECT_EQ(received, run(place, {"inspect", "evil.gguf"}).out);
}

TEST(Terminal, ErrorsQuoteWithoutHarm) {
  const CliFixture place;
  const std::string missing = kEvil + "\x9b";
  for (const Words& words : std::vector<Words>{
           {missing},
           {"train", "--config", "run.yaml", "--" + missing},
           {"train", "--config", missing},
           {"train", "--config", "run.yaml", "--set", missing},
           {"train", "--config", "run.yaml", "--set", "run=" + missing},
           {"generate", "--config", "run.yaml", "--prompt", "x", "--drafter", missing},
           {"generate", "--config", "run.yaml", "--prompt", "x", "--set",
            "backbone.model=" + missing},
           {"inspect", missing},
           {"completion", missing},
           {"doctor", missing, "--backbone", missing}})
    EXPECT_NE(expect_harmless(place, words, 2).find(R"(\x1b]52;c;)"), std::string::npos)
        << concat(words);
}

/// A run in whose names and texts everything is evil.
class EvilRun : public testing::Test {
 protected:
  void SetUp() override {
    std::string settings = file_text(place_ / "run.yaml");
    const auto replace = [&](const std::string& old, const std::string& text) {
      const size_t at = settings.find(old);
      ASSERT_NE(at, std::string::npos) << old << settings;
      settings.replace(at, old.size(), text);
    };
    const std::string model = kEvil + ".gguf", prompts = kEvil + ".jsonl";
    std::filesystem::copy_file(CliFixture::model(), place_ / model);
    replace("runs/tiny", quoted("runs/" + kEvil));
    replace(CliFixture::model(), quoted(model));
    replace("[prompts.jsonl]", "[" + quoted(prompts) + "]");
    write_text(place_ / "run.yaml", settings);
    std::string lines;
    for (int i = 0; i < 12; ++i)
      lines +=
          json{{"id", kEvil + std::to_string(i)}, {"text", "Once " + kEvil}, {"category", kEvil}}
              .dump() +
          "\n";
    write_text(place_ / prompts, lines);
    expect_harmless(place_, of_run("distill"));
  }

  static Words of_run(const std::string& command, const Words& more = {}) {
    Words words{command, "--config", "run.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string harmless(const std::string& command, const Words& more = {}) const {
    return expect_harmless(place_, of_run(command, more));
  }
  void expect_harmless_page(const std::string& name) const {
    const std::string page = file_text(place_ / (folder() + "/" + name));
    EXPECT_NE(page, "") << name;
    EXPECT_EQ(page, shown_text(page)) << name;
    EXPECT_EQ(page.find("<script"), std::string::npos) << name;
    EXPECT_EQ(page.find("x\"'"), std::string::npos) << name;
  }
  static std::string folder() { return "runs/" + kEvil; }
  static std::string prompts() { return kEvil + ".jsonl"; }

  CliFixture place_;
};

TEST_F(EvilRun, MakesEveryArtifactWithoutHarm) {
  harmless("train", {"--dry-run"});
  harmless("train", {"--set", "train.heads.input=hidden"});
  harmless("calibrate");
  harmless("build-store");
  harmless("make-draft", {"--set", "draft.layers=1"});
  harmless("report", {"--json"});
  const std::string out = kEvil + "-out", back = kEvil + "-back";
  harmless("export", {"--format", "vllm", "--output", out});
  harmless("import", {out, "--set", "generate.heads=" + quoted(back)});
  harmless("dataset", {"export", kEvil + "-all.jsonl"});
  expect_harmless(place_, {"doctor", out, "--backbone", kEvil + ".gguf", "--no-measuring"});
  for (const char* name : {"", "dataset/shard-00000.h5", "heads", "train", "draft", "tree.yaml"})
    expect_harmless(place_, {"inspect", folder() + "/" + name});
  expect_harmless(place_, {"inspect", "--json", folder() + "/heads"});
  expect_harmless_page("report.html");
}

TEST_F(EvilRun, ComparesAndMeasuresWithoutHarm) {
  for (const char* stage : {"train", "calibrate"}) harmless(stage, {"--json"});
  const auto asked = [](Words more) {
    more.insert(more.end(), {"--questions", prompts(), "--limit", "2"});
    return more;
  };
  harmless("generate", asked({"--compare"}));
  harmless("generate", asked({"--json"}));
  const std::string table = harmless("bench", asked({"--methods", "medusa"}));
  EXPECT_NE(table.find(R"(\x1b]52;)"), std::string::npos) << table << "has the category";
  harmless("quality", asked({"--dtypes", "int8"}));
  harmless("profile", {"--rows", "1", "--contexts", "8", "--repeat", "1"});
  for (const char* name : {"compare.json", "bench.json", "bench.jsonl", "profile.json"})
    expect_harmless(place_, {"inspect", folder() + "/" + name});
  for (const char* name : {"report.html", "bench.html", "profile.html"}) expect_harmless_page(name);
}

TEST_F(EvilRun, QuestionsAreShownBeforeTheirAnswers) {
  const Words words = of_run("generate", {"--drafter", "none", "--questions", prompts()});
  for (const std::string& said : {run(place_, words).out, on_terminal(place_, words)})
    EXPECT_NE(said.find(R"([\x1b]52;c;ZXZpbA==\x07)"), std::string::npos) << said;
  const std::string received = on_terminal(place_, words);
  std::string text = received;  // the one sequence that is ours begins a line of progress
  for (size_t at; (at = text.find("\r\x1b[K")) != std::string::npos;) text.erase(at, 4);
  EXPECT_EQ(text, shown_text(text));
}

TEST(Terminal, AnAnswerIsRawForAProgramAndShownToAPerson) {
  const CliFixture place;
  // So hot that all tokens are as probable, among them those of single bytes.
  const Words words{"generate",
                    "--config",
                    "run.yaml",
                    "--prompt",
                    "Once",
                    "--drafter",
                    "none",
                    "--set",
                    "generate.temperature=1000",
                    "--set",
                    "generate.rule=match",
                    "--set",
                    "generate.max_new_tokens=200"};
  Words as_json = words;
  as_json.emplace_back("--json");
  const std::string answer =
      json::parse(run(place, as_json).out).at("answers").at(0).at("text").get<std::string>();
  ASSERT_NE(answer, shown_text(answer)) << "the model wrote no control character";
  EXPECT_EQ(run(place, words).out, answer + "\n");

  Channel terminal = make_terminal();
  const Descriptor null("/dev/null", O_RDWR);
  StartedProgram program(place, words, {null.number(), terminal.write.number(), null.number()});
  terminal.write.close();
  EXPECT_EQ(terminal.read.read_all(), shown_text(answer) + "\n");
  EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace medusa::cli
