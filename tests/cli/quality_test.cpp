// medusa quality, on the tiny trained model.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

class Quality : public testing::Test {
 protected:
  std::string greedy_text(const std::string& prompt, const std::string& dtype) const {
    return json::parse(place_
                           .run("generate --config run.yaml --drafter none --json --dtype " +
                                dtype + " --prompt '" + prompt + "'")
                           .out)
        .at("answers")
        .at(0)
        .at("tokens")
        .dump();
  }

  CliFixture place_;
};

TEST_F(Quality, ComparesDtypesWithFloat32) {
  const std::string command =
      "quality --config run.yaml --questions prompts.jsonl --dtypes float32,bfloat16,int8";
  const ProcessResult ran = place_.run(command + " --json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json rows = json::parse(ran.out).at("dtypes");
  ASSERT_EQ(rows.size(), 3);
  for (const json& row : rows) {
    EXPECT_EQ(row.at("answers"), 12) << row;
    EXPECT_EQ(row.at("gaps").size() + row.at("same_texts").get<size_t>(), 12) << row;
    EXPECT_EQ(row.at("float32_perplexity"), rows[0].at("perplexity")) << row;
  }
  EXPECT_EQ(rows[0].at("dtype"), "float32");
  EXPECT_EQ(rows[0].at("same_token"), 1.0);
  EXPECT_EQ(rows[0].at("kl_nats"), 0.0);
  EXPECT_EQ(rows[0].at("same_texts"), 12);
  EXPECT_GT(rows[1].at("kl_nats"), 0.0);
  EXPECT_GT(rows[2].at("kl_nats"), rows[1].at("kl_nats")) << "eight bits are fewer than sixteen";
  const ProcessResult text = place_.run(command + " --limit 2");
  EXPECT_NE(text.out.find("float32       100.00 %    0.00000"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("2 / 2"), std::string::npos) << text.out;
}

TEST_F(Quality, CountsTheTextsThatGenerateWrites) {
  const json rows = json::parse(place_
                                    .run("quality --config run.yaml --questions prompts.jsonl "
                                         "--dtypes int8 --json --set "
                                         "generate.max_new_tokens=24")
                                    .out)
                        .at("dtypes");
  int same = 0;
  for (const char* prompt : {"Once upon a time", "Lily and Tom", "The big dog", "One day, a boy",
                             "Mom said", "In the park", "A little bird", "The sun was",
                             "Tim had a red", "There was a cat", "Sam liked to", "At night"})
    same += greedy_text(prompt, "int8") == greedy_text(prompt, "float32") ? 1 : 0;
  EXPECT_EQ(rows[0].at("same_texts"), same);
}

TEST_F(Quality, ADtypeThatCannotRunSaysWhyInItsRow) {
  const ProcessResult ran = place_.run(
      "quality --config run.yaml --questions prompts.jsonl --limit 1 --dtypes float32,bfloat16 "
      "--set backbone.cpu=plain --json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json rows = json::parse(ran.out).at("dtypes");
  ASSERT_EQ(rows.size(), 2) << "the second is tried, too";
  EXPECT_NE(rows[0].at("cannot_run").get<std::string>().find("float32"), std::string::npos);
  EXPECT_NE(rows[1].at("cannot_run").get<std::string>().find("multiples of 32"), std::string::npos);
  EXPECT_FALSE(rows[1].contains("kl_nats"));
}

TEST_F(Quality, AnUnknownDtypeIsTheUsersError) {
  const ProcessResult ran =
      place_.run("quality --config run.yaml --questions prompts.jsonl --dtypes bfloat16,int9");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err,
            "medusa: --dtypes is 'int9' (did you mean 'int8'?), expected one of auto | float32 | "
            "bfloat16 | int8 | stored; correct it, see medusa quality --help\n");
}

}  // namespace
}  // namespace medusa::cli
