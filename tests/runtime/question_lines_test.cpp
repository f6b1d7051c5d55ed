#include "runtime/question_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/prompts.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {

const std::vector<std::string> kQuestions{"Who are you?", "A \"word\"\n\xC3\xA9\xFF", "Why?"};

TEST(QuestionLines, AreReadAsPrompts) {
  const fixtures::TempFolder folder;
  write_file(folder / "questions.jsonl", question_lines(kQuestions, "seed 1"));
  const PromptSet set = read_prompts(folder / "questions.jsonl");
  ASSERT_EQ(set.prompts.size(), 3U);
  EXPECT_EQ(set.prompts[2].id, "self/2");
  EXPECT_EQ(set.prompts[0].messages.back().content, kQuestions[0]);
  EXPECT_EQ(set.prompts[1].messages.back().content, "A \"word\"\n\xC3\xA9\xEF\xBF\xBD");
}

TEST(QuestionLines, SayWhatWroteThemUntilAnythingOfThemIsChanged) {
  const std::string lines = question_lines(kQuestions, "seed 1");
  EXPECT_EQ(questions_made_with(lines), "seed 1");
  EXPECT_EQ(questions_made_with(question_lines({"Bad \xFF"}, "seed 2")), "seed 2");
  std::vector<std::string> changed{"", "{}\n", "{\"text\": \"Who are you?\"}\n", lines + "\n",
                                   lines.substr(0, lines.rfind('{'))};
  for (const bool of_first : {true, false})
    for (const nlohmann::json& more :
         {nlohmann::json{{"system", "Be brief."}}, nlohmann::json{{"text", "Who is he?"}},
          nlohmann::json{{"category", "own"}},
          nlohmann::json{{"turns", {"Who are you?", "Why?"}}}}) {
      const size_t begin = of_first ? 0 : lines.find('\n') + 1, end = lines.find('\n', begin);
      nlohmann::json line = nlohmann::json::parse(lines.substr(begin, end - begin));
      line.update(more);
      changed.push_back(lines.substr(0, begin) + line.dump() + lines.substr(end));
    }
  for (const std::string& each : changed) EXPECT_EQ(questions_made_with(each), "") << each;
}

}  // namespace
}  // namespace medusa
