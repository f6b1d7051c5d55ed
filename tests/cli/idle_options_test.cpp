// Options that would change nothing are refused, and a "-" is standard output or nothing.
#include "program.h"

namespace medusa::cli {
namespace {

void expect_idle(const ProcessResult& ran, const std::string& message) {
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_EQ(ran.err, "medusa: " + message + "\n");
}

TEST(IdleOptions, GenerateRefusesThem) {
  const CliFixture place;
  const std::string ask = "generate --config run.yaml --prompt Once ";
  expect_idle(place.run(ask + "--drafter none --logprobs 3"),
              "--logprobs 3: found no --json, expected it, as the text alone shows no numbers; add "
              "--json");
  for (const std::string idle : {"--limit", "--batch"})
    expect_idle(place.run(ask + "--drafter none " + idle + " 2"),
                idle + ": found one prompt, expected --questions with several; leave it out");
  const std::string advice =
      ", expected none, as it decodes one prompt at a time by methods of its own; leave it out, or "
      "choose methods with medusa bench";
  for (const char* idle : {"--logprobs 3", "--batch 4", "--drafter none", "--rule match"})
    expect_idle(place.run(ask + "--compare " + idle),
                std::string("generate --compare: found ") + idle + advice);
  const std::string unread =
      ", which does not read it, expected one that does, like medusa; leave the option out or "
      "choose another drafter";
  expect_idle(place.run(ask + "--drafter none --tree nowhere.yaml"),
              "--tree nowhere.yaml: found drafter none" + unread);
  expect_idle(place.run(ask + "--drafter prompt_lookup --heads nowhere"),
              "--heads nowhere: found drafter prompt_lookup" + unread);
  expect_idle(place.run("bench --config run.yaml --methods none,prompt_lookup --heads nowhere"),
              "--heads nowhere: found drafter none, prompt_lookup" + unread);
  const ProcessResult shared = place.run(ask + "--drafter none --set generate.heads=nowhere");
  EXPECT_EQ(shared.status, 0) << "settings are for several commands\n" << shared.err;
}

TEST(IdleOptions, AScriptIsNoJson) {
  const CliFixture place;
  expect_idle(place.run("completion bash --json"),
              "completion: found --json, expected none, as a script is text; leave it out");
  EXPECT_EQ(place.run("completion bash").status, 0);
}

TEST(IdleOptions, ServeRefusesThem) {
  const CliFixture place;
  for (const char* idle : {"generate.max_new_tokens=5", "generate.stop=[the]", "seed=5"})
    expect_idle(place.run(std::string("serve --config run.yaml --port 0 --set ") + idle),
                std::string("--set ") + idle +
                    ": found a setting that serve does not read, expected others, as requests say "
                    "max_tokens, stop and seed themselves; leave it out");
}

TEST(IdleOptions, ProfileRefusesHeadsThatAreNotThere) {
  const CliFixture place;
  const ProcessResult ran = place.run("profile --config run.yaml --heads nowhere --rows 1");
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_NE(ran.err.find("nowhere: not found, expected trained heads"), std::string::npos)
      << ran.err;
}

TEST(StandardOutput, TakesAnExportedDataset) {
  const CliFixture place;
  ASSERT_EQ(place.run("distill --config run.yaml").status, 0);
  ASSERT_EQ(place.run("dataset export file.jsonl --config run.yaml").status, 0);
  const ProcessResult ran = place.run("dataset export - --config run.yaml");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, file_text(place / "file.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(place / "-"));
  expect_idle(place.run("dataset export - --config run.yaml --json"),
              "dataset export -: found --json, which prints on standard output, too, expected one "
              "of them; leave it out or name a file");
}

TEST(StandardOutput, TakesNoSettings) {
  const CliFixture place;
  expect_idle(place.run("init --output -"),
              "--output -: found no name of a file, expected one, as commands read settings by "
              "name; name another");
  EXPECT_FALSE(std::filesystem::exists(place / "-"));
}

}  // namespace
}  // namespace medusa::cli
