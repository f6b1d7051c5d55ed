// The options of every subcommand, parsed and listed without running anything.
#include "tools/commands/command_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/shown_text.h"
#include "data/prompts.h"
#include "tests/base/error_text.h"
#include "tools/commands/command.h"
#include "tools/compare/compare.h"
#include "tools/front/help.h"

namespace medusa {
namespace {

using fixtures::error_text;
namespace fs = std::filesystem;

constexpr const char* kFine = "(no error)";

std::string parse_error(const std::vector<std::string>& arguments) {
  return error_text([&] { parse_command_line("medusa", arguments); });
}

/// The words of a shell command without pipes, as the shell would split them.
std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote == 0 && !in_word && (c == '#' || c == '>' || c == '|')) break;
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
      in_word = true;
    } else if (quote == 0 && c == ' ') {
      if (in_word) out.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) out.push_back(word);
  return out;
}

size_t columns(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void expect_fits(const std::string& page, size_t most_lines) {
  std::istringstream in(page);
  size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) EXPECT_LE(columns(line), 100U) << line;
  EXPECT_LE(lines, most_lines) << page;
}

TEST(CommandLine, EveryPageOfHelpFitsOnAScreen) {
  const ProgramPages pages = describe_program();
  expect_fits(program_help(pages.commands), 40);
  for (const CommandPage& command : pages.commands) {
    SCOPED_TRACE(command.name);
    expect_fits(command_help(command), 40);
    EXPECT_FALSE(command.examples.empty());
    // A part of the settings begins with a blank line and its title.
    const std::string settings = settings_help(settings_of(pages.settings, command.sections));
    size_t at = 0;
    while (at < settings.size()) {
      const size_t end = std::min(settings.find("\n\nSettings: ", at + 1), settings.size());
      expect_fits(settings.substr(at + 1, end - at - 1), 40);
      at = end + 1;
    }
  }
}

TEST(CommandLine, ARepeatableOptionTakesOneWordAsItIs) {
  CommandOptions generate(command_named("generate"), "medusa");
  generate.options.parse({"--stop", "[END]", "--set", "seed=2", "--stop", "[a,b]", "m.gguf", "hi"});
  ASSERT_EQ(generate.common.settings.size(), 1U);
  EXPECT_EQ(generate.common.settings[0].texts, (std::vector<std::string>{"[END]", "[a,b]"}));
  EXPECT_EQ(generate.common.sets, std::vector<std::string>{"seed=2"});
  // MODEL and PROMPT are left: a third word is one too many.
  EXPECT_NE(parse_error({"generate", "--stop", "x", "m.gguf", "hi", "there"}), kFine);
}

TEST(CommandLine, EveryExampleOfHelpParses) {
  for (const Command& command : commands())
    for (const std::string& example : command.examples) {
      const auto words = shell_words(example);
      if (words[0] != "cat") {
        EXPECT_EQ(parse_error(words), kFine) << example;
      }
    }
}

TEST(CommandLine, ExamplesInHelpCanBePasted) {
  for (const Command& command : commands()) {
    const std::string help = command_help(CommandOptions(command, "medusa").options.page());
    std::istringstream lines(help.substr(help.find("\nExamples\n") + 10));
    for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
      const size_t call = line.find("medusa " + command.name);
      ASSERT_NE(call, std::string::npos) << line;
      EXPECT_EQ(line.substr(0, call).find("medusa"), std::string::npos) << line;
      EXPECT_EQ(parse_error(shell_words(line.substr(call + 7))), kFine) << line;
    }
  }
}

TEST(CommandLine, AnOptionThatIsGivenTwiceIsRefusedInOurWords) {
  const auto error = [](const std::string& option) {
    return "generate: " + option +
           " is given twice, expected once; remove one, see medusa "
           "generate --help";
  };
  EXPECT_EQ(parse_error({"generate", "m.gguf", "hi", "--limit", "1", "--limit=2"}),
            error("--limit"));
  EXPECT_EQ(parse_error({"generate", "m.gguf", "hi", "--temperature", "1", "--temperature", "1"}),
            error("--temperature"));
  EXPECT_EQ(parse_error({"generate", "m.gguf", "hi", "--json", "--json", "--set", "seed=1", "--set",
                         "seed=2"}),
            kFine);
  EXPECT_TRUE(parse_error({"bench", "m.gguf", "--batch", "2", "--slots", "3"})
                  .starts_with("bench: --slots is given twice"))
      << "an older name of the same";
}

TEST(CommandLine, ASlipGetsTheNearestWord) {
  EXPECT_EQ(parse_error({"generate", "m.gguf", "--promt", "hi"}),
            "generate: unknown option '--promt' (did you mean '--prompt'?), expected an option "
            "of this command; see medusa generate --help");
  EXPECT_EQ(parse_error({"train", "--epochs=3"}),
            "train: unknown option '--epochs' (did you mean '--set train.epochs=…'?), expected an "
            "option of this command; see medusa train --help");
  EXPECT_EQ(parse_error({"export", "--format", "vlm", "--output", "x"}),
            "--format is 'vlm' (did you mean 'vllm'?), expected one of fasterdecoding | tgi-v2 | "
            "vllm | tensorrt-llm | medusa-2; correct it, see medusa export --help");
  EXPECT_TRUE(parse_error({"generate", "m.gguf", "hi", "--drafter=medua"})
                  .starts_with("--drafter is 'medua' (did you mean 'medusa'?), expected one of "
                               "none | medusa | "));
  EXPECT_TRUE(parse_error({"bench", "m.gguf", "--methods", "none,merg"})
                  .starts_with("--methods is 'merg' (did you mean 'merge'?), expected one of "));
  EXPECT_TRUE(parse_error({"bench", "m.gguf", "--drafter", "merg"}).starts_with("--drafter is "));
  EXPECT_EQ(parse_error({"generate", "m.gguf", "hi", "--seed"}),
            "generate: --seed has no value, expected N behind it; see medusa generate --help");
  EXPECT_TRUE(parse_error({"dataset", "exprot", "x.jsonl"})
                  .starts_with("ACTION is 'exprot' (did you mean 'export'?), expected one of "
                               "export | import | merge"));
  EXPECT_EQ(parse_error({"distill", "m.gguf", "two", "words"}),
            "distill: found 'two' too much, expected no more arguments without a name; put quotes "
            "around a text with spaces, see medusa distill --help");
}

TEST(CommandLine, WrongNumbersAreToldWithoutLimitsOfTheirTypes) {
  for (const auto& wrong : {std::vector<std::string>{"export", "--num-heads", "runs/x"},
                            {"generate", "--limit", "0"},
                            {"bench", "--temperature", "inf"},
                            {"serve", "--port", "70000"},
                            {"profile", "--rows", "1,999"}}) {
    const std::string message = parse_error(wrong);
    EXPECT_TRUE(message.starts_with(wrong[1] + " is '")) << message;
    EXPECT_LT(message.size(), 140U) << message;
  }
}

TEST(CommandLine, APortBeyondAllPortsIsToldTheRange) {
  EXPECT_EQ(parse_error({"serve", "m.gguf", "--port", "99999"}),
            "--port is '99999', expected a whole number from 0 to 65535; correct it, see medusa "
            "serve --help");
}

TEST(CommandLine, AModelAloneIsEnoughAndNamesTheRun) {
  CommonOptions common;
  common.model = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";
  common.set("--temperature", "generate.temperature", "0.5");
  common.set("--stop", "generate.stop", "x");
  common.settings.back().is_list = true;
  const RunConfig config = read_run_config(common);
  EXPECT_EQ(config.run, "runs/tiny_model");
  EXPECT_EQ(config.backbone.model, common.model);
  EXPECT_EQ(config.generate.infer.sampling.temperature, 0.5);
  EXPECT_EQ(config.generate.stop, std::vector<std::string>{"x"});
  EXPECT_FALSE(config.generate.names_drafter);
  EXPECT_EQ(model_name("models/llama/"), "llama");
  EXPECT_EQ(model_name("m.Q4_1.gguf"), "m.Q4_1");
}

TEST(CommandLine, OptionsSayWhatIsWrongAsTheyWereTyped) {
  CommonOptions common;
  common.model = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";
  common.set("--temperature", "generate.temperature", "warm");
  EXPECT_TRUE(error_text([&] { read_run_config(common); }).starts_with("--temperature warm: "));
  common.settings.clear();
  common.sets = {"temperature=1"};
  EXPECT_EQ(error_text([&] { read_run_config(common); }),
            "--set temperature=1: unknown key 'temperature' (did you mean "
            "'generate.temperature'?); correct or remove it");
  common.sets = {"generat.temperature=1"};
  EXPECT_EQ(error_text([&] { read_run_config(common); }),
            "--set generat.temperature=1: unknown key 'generat' (did you mean 'generate'?); "
            "correct or remove it");
  common.sets.clear();
  common.model = "no such model";
  EXPECT_EQ(error_text([&] { read_run_config(common); }),
            "no such model: no such file or folder, expected a model (a .gguf file, or a folder "
            "with config.json and .safetensors); check the path");
}

TEST(CommandLine, WhatComesNextCanBePasted) {
  CommonOptions common;
  common.program = "build/release/medusa";
  common.model = "my model.gguf";
  common.sets = {"train.data=[a, b]"};
  common.set("--dtype", "backbone.dtype", "stored");
  common.set("--max-tokens", "distill.max_new_tokens", "9");  // of this command alone
  EXPECT_EQ(same_run_command(common, "generate", {"What's it?"}),
            "build/release/medusa generate \"my model.gguf\" --set \"train.data=[a, b]\" --dtype "
            "stored \"What's it?\"");
  EXPECT_EQ(same_run_command(common, "dataset merge"),
            "build/release/medusa dataset merge --model \"my model.gguf\" --set \"train.data=[a, "
            "b]\" --set 'backbone.dtype=\"stored\"'")
      << "dataset has no --dtype";
  EXPECT_EQ(shell_word("a$b'c"), "'a$b'\\''c'");

  CommonOptions dashed;
  dashed.program = "medusa";
  dashed.model = "-m.gguf";
  dashed.set("--run", "run", "-r");
  EXPECT_EQ(same_run_command(dashed, "train"), "medusa train --model=-m.gguf --run=-r");

  CommonOptions beside_settings;
  beside_settings.program = "medusa";
  beside_settings.model = "m.gguf";
  beside_settings.config = "run.yaml";
  EXPECT_EQ(same_run_command(beside_settings, "generate", {"--compare"}),
            "medusa generate --model m.gguf --config run.yaml --compare");
}

TEST(CommandLine, TheBuiltInQuestionsAreThoseOfTheDemo) {
  const auto file = read_prompts(MEDUSA_SOURCE_DIR "/configs/demo_questions.jsonl").prompts;
  const auto built_in = sample_questions();
  ASSERT_EQ(built_in.size(), file.size());
  for (size_t i = 0; i < file.size(); ++i) {
    EXPECT_EQ(built_in[i].id, file[i].id);
    EXPECT_EQ(built_in[i].category, file[i].category);
    EXPECT_EQ(built_in[i].messages.at(0).content, file[i].messages.at(0).content);
  }
}

// ---- the pages

/// Lines of the page's code blocks and code spans that call medusa.
std::vector<std::string> commands_in(const std::string& page) {
  std::vector<std::string> out;
  const auto add = [&out](std::string text) {
    if (text.starts_with("mpirun ") || text.starts_with("srun "))
      text = text.substr(std::min(text.find("build/release/medusa "), text.size()));
    if (text.starts_with("build/release/")) text = text.substr(14);
    if (text.starts_with("medusa ")) out.push_back(text.substr(7));
  };
  std::istringstream lines(page);
  bool in_block = false;
  std::string prose;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```"))
      in_block = !in_block;
    else if (in_block)
      add(line);
    else
      prose += line + " ";
  }
  for (size_t at = prose.find('`'); at != std::string::npos;) {
    const size_t end = prose.find('`', at + 1);
    if (end == std::string::npos) break;
    add(prose.substr(at + 1, end - at - 1));
    at = prose.find('`', end + 1);
  }
  return out;
}

TEST(CommandLine, EveryCommandPrintedInAPageParses) {
  std::vector<fs::path> pages{fs::path(MEDUSA_SOURCE_DIR) / "README.md",
                              fs::path(MEDUSA_SOURCE_DIR) / "tools/README.md",
                              fs::path(MEDUSA_SOURCE_DIR) / "configs/README.md"};
  for (const auto& entry : fs::directory_iterator(fs::path(MEDUSA_SOURCE_DIR) / "docs/guide"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  int checked = 0;
  for (const fs::path& page : pages)
    for (std::string line : commands_in(read_file(page))) {
      // What a page sets as a variable, or leaves to the reader.
      if (const size_t at = line.find("$tuned"); at != std::string::npos)
        line.replace(at, 6, "--config configs/demo_medusa2.yaml");
      std::vector<std::string> words = shell_words(line);
      if (words.size() < 2 || line.find("…") != std::string::npos) continue;
      if (words[0] == "COMMAND") words[0] = "train";
      if (words[0] == "help") words = {words[1] == "COMMAND" ? "train" : words[1]};
      if (words[0].starts_with("--")) continue;  // help --json
      std::string error = parse_error(words);
      // A span in prose may name a command without what it requires.
      if (error.find(" is required") != std::string::npos) error = kFine;
      EXPECT_EQ(error, kFine) << page.string() << ": medusa " << line;
      ++checked;
    }
  EXPECT_GT(checked, 30);
}

}  // namespace
}  // namespace medusa
