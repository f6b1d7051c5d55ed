// medusa chat through a pipe: the answers of medusa generate, and what the commands do.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "started_program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

ProcessResult chat(const CliFixture& place, const std::string& input, const Words& more = {}) {
  write_text(place / "in.txt", input);
  const Descriptor in(place / "in.txt", O_RDONLY);
  const Descriptor out(place / "out.txt", O_WRONLY | O_CREAT | O_TRUNC);
  const Descriptor err(place / "err.txt", O_WRONLY | O_CREAT | O_TRUNC);
  Words words{"chat", "--config", "run.yaml"};
  words.insert(words.end(), more.begin(), more.end());
  StartedProgram program(place, words, {in.number(), out.number(), err.number()});
  const int status = program.wait();
  std::string said = file_text(place / "err.txt");
  const size_t loaded = said.find(" tensors in ");  // what follows the loading
  if (loaded != std::string::npos) said.erase(0, said.find('\n', loaded) + 1);
  return {status, file_text(place / "out.txt"), said};
}

/// The answers, as --json gives them.
std::vector<json> answers(const CliFixture& place, const std::string& input, Words more = {}) {
  more.emplace_back("--json");
  const ProcessResult ran = chat(place, input, more);
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::vector<json> out;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) out.push_back(json::parse(line));
  return out;
}

std::string text_of(const json& answer) { return answer.at("text").get<std::string>(); }

class ChatOfARun : public TrainedRun {};

TEST_F(ChatOfARun, APipeGetsTheTextsOfGenerate) {
  for (const char* drafter : {"none", "prompt_lookup", "medusa", "merge"})
    for (const char* temperature : {"0", "0.8"}) {
      const std::string settings =
          std::string(" --drafter ") + drafter + " --temperature " + temperature;
      std::string expected;
      for (const char* prompt : {"Once upon a time", "Lily and Tom"})
        expected += place_
                        .run("generate --config run.yaml --drafter none --temperature " +
                             std::string(temperature) + " --prompt '" + prompt + "'")
                        .out;
      const ProcessResult ran = chat(place_, "Once upon a time\n/undo\n\nLily and Tom",
                                     {"--drafter", drafter, "--temperature", temperature});
      EXPECT_EQ(ran.status, 0) << ran.err;
      EXPECT_EQ(ran.out, expected) << drafter << " at " << temperature;
      EXPECT_EQ(ran.err, "taken back: Once upon a time\n") << "no progress in a pipe";
    }
}

TEST_F(ChatOfARun, TheDrafterMayChangeAndTheTextDoesNot) {
  const std::string ask = "Once upon a time\n/undo\n";
  const auto all = answers(
      place_, ask + "/drafter medusa\n" + ask + "/drafter merge\n" + ask + "/drafter none\n" + ask,
      {"--drafter", "prompt_lookup"});
  ASSERT_EQ(all.size(), 4U);
  for (const json& each : all) EXPECT_EQ(text_of(each), text_of(all[0]));
  EXPECT_GT(all[1].at("stats").at("proposed"), 0);
  EXPECT_EQ(all[3].at("stats").at("proposed"), 0);
}

TEST(Chat, ASecondMessageGoesOnWithTheFirst) {
  const CliFixture place;
  const Words settings{"--drafter", "none", "--max-tokens", "60"};
  const auto both = answers(place, "Once upon a time\nAnd then\n", settings);
  ASSERT_EQ(both.size(), 2U);
  // The same as a prompt of several messages.
  const json question{{"messages",
                       {{{"role", "user"}, {"content", "Once upon a time"}},
                        {{"role", "assistant"}, {"content", text_of(both[0])}},
                        {{"role", "user"}, {"content", "And then"}}}}};
  write_text(place / "q.jsonl", question.dump() + "\n");
  const ProcessResult ran = place.run(
      "generate --config run.yaml --drafter none --max-tokens 60 --questions q.jsonl --json");
  EXPECT_EQ(text_of(both[1]), text_of(json::parse(ran.out).at("answers").at(0))) << ran.err;
}

TEST(Chat, TheCacheKeepsTheConversation) {
  const CliFixture place;  // whose model's rows depend on their neighbors, so that none is kept
  const std::string model = MEDUSA_SOURCE_DIR "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  const auto both = answers(place, "Name the days of the week.\nAgain, please.\n",
                            {"--drafter", "none", "--max-tokens", "40", "--set",
                             "backbone.model=" + model, "--set", "backbone.chat_template=chatml"});
  ASSERT_EQ(both.size(), 2U);
  const auto stat = [&](size_t i, const char* name) {
    return both[i].at("stats").at(name).get<int64_t>();
  };
  EXPECT_EQ(stat(0, "cached_prompt_tokens"), 0);
  EXPECT_GE(stat(1, "cached_prompt_tokens"), 32);
}

TEST(Chat, SystemUndoAndRegenChangeWhatIsAnswered) {
  const CliFixture place;
  const auto plain = answers(place, "Tom said\n", {"--drafter", "none"});
  const auto told = answers(place, "Tom said\n", {"--drafter", "none", "--system", "Lily ran."});
  ASSERT_NE(text_of(plain.at(0)), text_of(told.at(0))) << "the system message counts";
  const auto all = answers(place, "/system Lily ran.\nTom said\n/undo\n/system\nTom said\n/regen\n",
                           {"--drafter", "none"});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(text_of(all[0]), text_of(told[0]));
  EXPECT_EQ(text_of(all[1]), text_of(plain[0]));
  EXPECT_EQ(text_of(all[2]), text_of(plain[0])) << "temperature 0";
}

TEST(Chat, RegenSamplesWithTheNextSeed) {
  const CliFixture place;
  const auto of_seed = [&](const std::string& seed) {
    return text_of(
        answers(place, "Tom said\n", {"--drafter", "none", "--temperature", "1", "--seed", seed})
            .at(0));
  };
  const auto all = answers(place, "/temperature 1\nTom said\n/regen\n/regen\n/seed 4\n/regen\n",
                           {"--drafter", "none", "--seed", "3"});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(text_of(all[0]), of_seed("3"));
  EXPECT_EQ(text_of(all[1]), of_seed("4"));
  EXPECT_EQ(text_of(all[2]), of_seed("5"));
  EXPECT_EQ(text_of(all[3]), of_seed("5")) << "the next one of seed 4";
  EXPECT_NE(text_of(all[0]), text_of(all[1]));
}

TEST(Chat, ASavedConversationGoesOn) {
  const CliFixture place;
  const Words settings{"--drafter", "none"};
  const auto whole =
      answers(place, "/system Lily ran.\nTom said\n/save chat.json\nMom said\n", settings);
  const json saved = json::parse(file_text(place / "chat.json"));
  EXPECT_EQ(saved.at("messages").at(2).at("content"), text_of(whole.at(0)));
  const auto rest = answers(place, "/load chat.json\nMom said\n", settings);
  EXPECT_EQ(text_of(rest.at(0)), text_of(whole.at(1)));
}

TEST(Chat, AByteOrderMarkIsNoPartOfAMessage) {
  const CliFixture place;
  EXPECT_EQ(chat(place, "\xEF\xBB\xBFOnce upon a time").out, chat(place, "Once upon a time").out);
}

TEST(Chat, SeveralLinesAreOneMessage) {
  const CliFixture place;
  const auto all = answers(place, "\"\"\"\nTom said\n/help\n\"\"\"\n", {"--drafter", "none"});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at("prompt"), "Tom said\n/help");
}

TEST(Chat, APipesFirstMistakeEndsIt) {
  const CliFixture place;
  write_text(place / "novel.txt", "It was a dark night.\n");
  const std::string ask = "Tom said\n";
  for (const auto& [input, error] : std::vector<std::pair<std::string, std::string>>{
           {"/regn\n",
            "unknown command '/regn' (did you mean '/regen'?), expected one that /help "
            "lists; a message that begins with / stands between lines of \"\"\""},
           {"/undo\n", "/undo: nothing was said yet, expected a message to take back; ask first"},
           {"/regen\n",
            "/regen: nothing was said yet, expected a message to answer again; ask first"},
           {ask + "/save novel.txt\n",
            "novel.txt: holds something else, expected a saved conversation, an empty file or "
            "nothing there, since it would be replaced; move it away or name another output"},
           {"/load none.json\n", "none.json: no such file; check the path"},
           {"/temperature warm\n", "/temperature is 'warm', expected a finite number; correct it"},
           {"/temperature -1\n", "/temperature is -1, expected 0 or more; correct it"},
           {"/seed -1\n", "/seed is '-1', expected a whole number; correct it"},
           {"\"\"\"\nTom",
            "the input ends inside a message that \"\"\" began, expected \"\"\" at "
            "the end of its last line; add it"},
           {"caf\xe9\n",
            "the message is not UTF-8, expected text in it; set the terminal to "
            "UTF-8, or convert what comes through the pipe"}}) {
    const ProcessResult ran = chat(place, input + ask, {"--drafter", "none"});
    EXPECT_EQ(ran.status, 2) << input;
    EXPECT_EQ(ran.err, "medusa: " + error + "\n") << input;
  }
  EXPECT_EQ(file_text(place / "novel.txt"), "It was a dark night.\n");
  std::string much;
  for (int i = 0; i < 400; ++i) much += "very ";
  const ProcessResult full = chat(place, much + "\n", {"--drafter", "none"});
  EXPECT_EQ(full.status, 2);
  EXPECT_NE(full.err.find("expected fewer than the context of 256; take messages back with /undo"),
            std::string::npos)
      << full.err;
  // Heads that are not there: said before the model is loaded, and by the command.
  const ProcessResult ran = chat(place, ask, {"--drafter", "medusa"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("runs/tiny/heads: not found"), std::string::npos) << ran.err;
}

TEST(Chat, APipeGoesOnWithItsDrafterWhereAnotherOneIsNotToBeHad) {
  const CliFixture place;
  const std::string ask = "Tom said\n";
  const std::string expected = chat(place, ask + ask, {"--drafter", "none"}).out;
  for (const auto& [name, error] : std::vector<std::pair<std::string, std::string>>{
           {"medua",
            "/drafter is 'medua' (did you mean 'medusa'?), expected one of none | medusa | "
            "blockwise | draft_model | prompt_lookup | jacobi | lookahead | specinfer | sequoia | "
            "layer_skip | retrieval | shared | eagle3 | merge; correct it\n"},
           {"medusa", "runs/tiny/heads: not found, expected trained heads; "}}) {
    const std::string input = ask + "/drafter " + name + "\n" + ask + "/drafter\n";
    const ProcessResult ran = chat(place, input, {"--drafter", "none"});
    EXPECT_EQ(ran.status, 0) << name;
    EXPECT_EQ(ran.err.find(error), 0U) << ran.err;
    EXPECT_NE(ran.err.find("\ndrafter none: "), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, expected);
  }
}

TEST(Chat, NothingToReadIsNoError) {
  const CliFixture place;
  for (const char* input : {"", "\n\n", "/quit\nTom said\n", "/help\n/stats\n"}) {
    const ProcessResult ran = chat(place, input, {"--drafter", "none"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "") << input;
  }
  EXPECT_NE(chat(place, "/help\n", {"--drafter", "none"}).err.find("  /undo            take"),
            std::string::npos);
}

}  // namespace
}  // namespace medusa::cli
