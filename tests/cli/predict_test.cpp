// medusa calibrate --predict, on the tiny trained model.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

class Predict : public TrainedRun {};

TEST_F(Predict, PrintsWhatIsExpectedBesideWhatIsMeasured) {
  const std::string tree = file_text(place_ / "runs/tiny/tree.yaml");
  const std::string command = "calibrate --config run.yaml --predict prompts.jsonl --seed 3";
  const ProcessResult ran = place_.run(command + " --json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json found = json::parse(ran.out);
  EXPECT_EQ(found.at("num_answers"), 12);
  for (const char* name : {"calibrated", "every_position", "replayed", "measured"}) {
    const json& each = found.at(name);
    EXPECT_GE(each.at("tokens_per_step"), 1.0) << name;
    EXPECT_LE(each.at("low"), each.at("tokens_per_step")) << name;
    EXPECT_GE(each.at("high"), each.at("tokens_per_step")) << name;
  }
  EXPECT_EQ(found.at("measured").at("ratio_to_measured"), 1.0);
  EXPECT_NEAR(found.at("replayed").at("ratio_to_measured").get<double>(), 1, 0.1);
  const ProcessResult text = place_.run(command);
  EXPECT_NE(text.out.find("predicted: these answers, replayed"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("measured: decoded with the tree"), std::string::npos) << text.out;
  EXPECT_EQ(file_text(place_ / "runs/tiny/tree.yaml"), tree) << "it is left as it was";
  const ProcessResult dynamic = place_.run(command + " --json --set generate.medusa.dynamic=true");
  ASSERT_EQ(dynamic.status, 0) << dynamic.err;
  EXPECT_EQ(json::parse(dynamic.out), found) << "the tree file is predicted, nothing else";
}

TEST_F(Predict, AnswersShorterThanTheHeadsLookAheadAreTheUsersError) {
  const ProcessResult ran = place_.run(
      "calibrate --config run.yaml --predict prompts.jsonl --set generate.max_new_tokens=2");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("medusa: --predict: no answer is longer than the 2 heads look ahead, "
                         "expected some; ask other questions or raise --max-tokens\n"),
            std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace medusa::cli
