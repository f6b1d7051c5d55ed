// What medusa calibrate finds by decoding decides where the settings say nothing: the drafter, and
// the thresholds of typical acceptance.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

class CalibratedChoice : public TrainedRun {
 protected:
  std::string tree() const { return file_text(place_ / "runs/tiny/tree.yaml"); }
  void name_in_tree(const std::string& drafter) {
    write_text(place_ / "runs/tiny/tree.yaml", untried_ + "drafter: " + drafter + "\n");
  }
  json statistics(const std::string& more) {
    const ProcessResult ran =
        place_.run("generate --config run.yaml --json --prompt 'Once upon a time'" + more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    const json answer = json::parse(ran.out).at("answers").at(0);
    return answer.at("stats").at("steps");
  }

  std::string untried_;
};

TEST_F(CalibratedChoice, CalibrateTriesDraftersAndKeepsTheFastest) {
  ASSERT_EQ(tree().find("drafter"), std::string::npos);
  const ProcessResult ran =
      place_.run("calibrate --config run.yaml --set calibrate.race_prompts=3 --json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json said = json::parse(ran.out);
  ASSERT_EQ(said.at("speedups").size(), 3U);
  EXPECT_EQ(said.at("speedups").at("none"), 1.0);
  std::string fastest;
  double most = 0;
  for (const auto& [drafter, speedup] : said.at("speedups").items())
    if (speedup.get<double>() > most) {
      most = speedup;
      fastest = drafter;
    }
  EXPECT_EQ(said.at("drafter"), fastest);
  const ProcessResult inspected = place_.run("inspect runs/tiny/tree.yaml --json");
  ASSERT_EQ(inspected.status, 0) << inspected.err;
  const json kept = json::parse(inspected.out);
  EXPECT_EQ(kept.at("drafter"), fastest);
  ASSERT_EQ(kept.at("drafters").size(), 3U);
  for (const json& each : kept.at("drafters")) {
    EXPECT_NEAR(each.at("speedup").get<double>(),
                said.at("speedups").at(each.at("drafter").get<std::string>()).get<double>(), 1e-4);
    EXPECT_LE(each.at("low"), each.at("speedup"));
    EXPECT_GE(each.at("high"), each.at("speedup"));
  }
}

TEST_F(CalibratedChoice, CalibrateForecastsASpeedOnlyWhereItMeasuredNone) {
  const std::string calibrate = "calibrate --config run.yaml --set calibrate.race_prompts=";
  const ProcessResult forecast = place_.run(calibrate + "0"), raced = place_.run(calibrate + "2");
  EXPECT_NE(forecast.err.find(" times as fast is expected\n"), std::string::npos) << forecast.err;
  EXPECT_EQ(forecast.err.find(" times as fast as plain decoding"), std::string::npos);
  EXPECT_EQ(raced.err.find(" times as fast is expected"), std::string::npos) << raced.err;
  EXPECT_NE(raced.err.find("drafter medusa: "), std::string::npos) << raced.err;
  EXPECT_NE(raced.err.find("a step takes "), std::string::npos) << raced.err;
}

TEST_F(CalibratedChoice, GenerateTakesTheTreesDrafterUnlessOneIsNamed) {
  untried_ = tree();
  const json medusa = statistics(" --drafter medusa"), plain = statistics(" --drafter none");
  ASSERT_LT(medusa, plain);
  EXPECT_EQ(statistics(""), medusa) << "none was tried";
  name_in_tree("none");
  EXPECT_EQ(statistics(""), plain);
  EXPECT_EQ(statistics(" --drafter medusa"), medusa);
  name_in_tree("medusa");
  EXPECT_EQ(statistics(""), medusa);
}

TEST_F(CalibratedChoice, ADrafterThatIsNoneIsTheUsersError) {
  untried_ = tree();
  name_in_tree("medusae");
  const ProcessResult ran = place_.run("generate --config run.yaml --prompt 'Once upon a time'");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("tree.yaml: 'drafter' is 'medusae', expected one of none | medusa | "),
            std::string::npos)
      << ran.err;
}

TEST_F(CalibratedChoice, WhatNeedsAMissingStoreIsLeftOutWithAWord) {
  const ProcessResult ran = place_.run(
      "calibrate --config run.yaml --json --set calibrate.race_prompts=1 --set "
      "'generate.merge.drafters=[medusa, retrieval]'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("note: drafter 'merge' is not tried: "), std::string::npos) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("speedups").size(), 2U);
}

TEST_F(CalibratedChoice, ThresholdsOfTypicalAcceptanceAreSweptAndKept) {
  const auto made_by = [&] {
    const std::string tree = file_text(place_ / "runs/tiny/tree.yaml");
    return tree.substr(0, tree.find('\n'));
  };
  const std::string made = made_by(), with_two = " --set calibrate.typical_prompts=2";
  ASSERT_EQ(made.find("# Made by: "), 0U) << made;
  ProcessResult swept;
  for (int i = 0; i < 2; ++i) {  // one replaces the other
    swept = place_.run("calibrate --config run.yaml --typical --json --max-tokens 6" + with_two);
    ASSERT_EQ(swept.status, 0) << swept.err;
    const std::string now = made_by();
    EXPECT_TRUE(now.starts_with(made + ", then ")) << now;
    EXPECT_NE(now.find("typical_prompts=2"), std::string::npos) << now;
    EXPECT_TRUE(now.ends_with(" --typical")) << now;
    EXPECT_EQ(now.find(", then "), now.rfind(", then ")) << now;
  }
  const json found = json::parse(swept.out);
  EXPECT_EQ(found.at("temperature"), 0.7);
  ASSERT_EQ(found.at("points").size(), 12U);
  for (const json& point : found.at("points")) {
    EXPECT_GT(point.at("speedup").at("value"), 0);
    EXPECT_GE(point.at("kl"), 0);
    EXPECT_LE(point.at("agreement"), 1);
  }
  const auto sampled = [&](const std::string& more) {
    const ProcessResult ran = place_.run(
        "generate --config run.yaml --drafter medusa --rule typical --temperature 0.7 --prompt "
        "Once" +
        more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.err;
  };
  EXPECT_NE(sampled("").find("note: epsilon "), std::string::npos);
  EXPECT_EQ(sampled(" --set generate.epsilon=0.09").find("note: epsilon "), std::string::npos);
  const ProcessResult seed = place_.run("calibrate --config run.yaml --typical --seed 99");
  EXPECT_EQ(seed.status, 2);
  EXPECT_NE(seed.err.find("seed is 99, expected 3 as in their training"), std::string::npos)
      << seed.err;
  const std::string again = "calibrate --config run.yaml --set calibrate.race_prompts=0";
  EXPECT_NE(place_.run(again).err.find("note: the thresholds of typical"), std::string::npos);
  EXPECT_EQ(place_.run(again).err.find("thresholds"), std::string::npos) << "they are gone";
  // The tree keeps what it had, and --typical alone needs one.
  EXPECT_EQ(place_.run("inspect runs/tiny/tree.yaml").status, 0);
  std::filesystem::remove(place_ / "runs/tiny/tree.yaml");
  const ProcessResult without = place_.run("calibrate --config run.yaml --typical");
  EXPECT_EQ(without.status, 2);
  EXPECT_NE(without.err.find("make it with medusa calibrate"), std::string::npos) << without.err;
}

TEST_F(CalibratedChoice, InterruptedMeasurementsLeaveWhatWasWhole) {
  const std::string race =
      "calibrate --config run.yaml --max-tokens 96 --set calibrate.race_prompts=12";
  ASSERT_EQ(place_.run(race).status, 0);
  const auto interrupted = [&](const std::string& line, double wait, const std::string& command) {
    const ProcessResult ran = place_.interrupt_after(line, wait, command);
    EXPECT_EQ(ran.status, 130) << command << "\n" << ran.err;
    EXPECT_NE(ran.err.find("run it again"), std::string::npos) << ran.err;
  };
  const std::string whole = tree();
  interrupted("compare: warm up", 0, race);
  EXPECT_EQ(tree(), whole);
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/tiny/tree.yaml.racing"));

  const std::string compare = "generate --config run.yaml --compare --questions ";
  ASSERT_EQ(place_.run(compare + "prompts.jsonl --limit 2").status, 0);
  const std::string compared = file_text(place_ / "runs/tiny/compare.json");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "{\"text\": \"Once upon a time\"}\n";
  write_text(place_ / "many.jsonl", many);
  interrupted("compare ", 1, compare + "many.jsonl");
  EXPECT_EQ(file_text(place_ / "runs/tiny/compare.json"), compared);

  std::filesystem::remove(place_ / "runs/tiny/tree.yaml");
  interrupted("compare: warm up", 0, race);
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/tiny/tree.yaml")) << "medusa run makes it";
}

TEST_F(CalibratedChoice, AnInterruptedSweepIsShownAndNotKept) {
  const std::string whole = tree();
  std::string said;
  // Later each time, until it is behind a prompt and before the last one.
  for (double wait = 0.3; said.find("before all prompts") == std::string::npos && wait < 60;
       wait *= 1.5) {
    const ProcessResult ran = place_.interrupt_after(
        "typical", wait, "calibrate --config run.yaml --typical --max-tokens 40");
    ASSERT_EQ(ran.status, 130) << ran.err;
    EXPECT_EQ(tree(), whole);
    said = ran.err;
  }
  EXPECT_NE(said.find("epsilon"), std::string::npos) << said;
}

TEST_F(CalibratedChoice, ATreeThatIsMadeMeanwhileIsNotReplaced) {
  // Until our program, which has the number of this shell, has ended.
  const ProcessResult swept = place_.run_with(
      "sh -c '(while kill -0 $$ 2>/dev/null; do echo \"# newer\" >>runs/tiny/tree.yaml; "
      "sleep 0.05; done) & exec \"$@\"' sh ",
      "calibrate --config run.yaml --typical --max-tokens 40 --set calibrate.typical_prompts=2");
  EXPECT_EQ(swept.status, 2);
  EXPECT_NE(swept.err.find("runs/tiny/tree.yaml: found another tree than the one that the"),
            std::string::npos)
      << swept.err;
  EXPECT_NE(swept.err.find("epsilon"), std::string::npos) << "what was measured is shown";
  EXPECT_EQ(tree().find("typical"), std::string::npos);
}

TEST_F(CalibratedChoice, ATreeOfOtherHeadsIsNotObeyed) {
  std::string other = tree();
  const size_t at = other.find("heads: sha256:");
  ASSERT_NE(at, std::string::npos) << other;
  other.replace(at + 14, 4, "0000");
  write_text(place_ / "runs/tiny/tree.yaml", other + "drafter: none\n");
  const ProcessResult ran = place_.run("generate --config run.yaml --prompt Once");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("calibrate again"), std::string::npos) << ran.err;
}

TEST_F(CalibratedChoice, TreesOfOtherProjectsAreTaken) {
  write_text(place_ / "tuples.json", "[(0,), (0, 0), (1,)]");
  write_text(place_ / "lists.json", "[[0], [0, 0], [1]]");
  for (const char* file : {"tuples.json", "lists.json"}) {
    const ProcessResult ran = place_.run(
        std::string("generate --config run.yaml --drafter medusa --prompt Once --tree ") + file);
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
}

}  // namespace
}  // namespace medusa::cli
