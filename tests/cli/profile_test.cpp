// medusa profile through the executable, on the tiny trained model.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

TEST(ProfileCommand, WritesTableNumbersAndPage) {
  const CliFixture place;
  const std::string profile = "profile --config run.yaml --rows 8,1 --repeat 2 --contexts 32,100 ";
  const ProcessResult ran = place.run(profile + "--json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json result = json::parse(ran.out);
  EXPECT_EQ(json::parse(file_text(place / "runs/tiny/profile.json")), result);
  EXPECT_EQ(result.at("drafted"), false) << "no heads are trained";
  EXPECT_GT(result.at("roof").at("read_bytes_per_s"), 1e8);
  EXPECT_GT(result.at("roof").at("flops_per_s"), 1e8);
  ASSERT_EQ(result.at("steps").size(), 4U);
  EXPECT_EQ(result["steps"][1].at("rows"), 8);
  EXPECT_EQ(result["steps"][2].at("context"), 100);
  EXPECT_NE(file_text(place / "runs/tiny/profile.html").find("<svg"), std::string::npos);
  const json inspected = json::parse(place.run("inspect runs/tiny/profile.json --json").out);
  EXPECT_EQ(inspected.at("kind"), "profile of a step");
  EXPECT_EQ(inspected.at("steps").size(), 4U);
}

TEST(ProfileCommand, AnInterruptedOneReplacesNoWholeOne) {
  const CliFixture place;
  const std::string profile = "profile --config run.yaml --rows 1 --contexts 32 ";
  ASSERT_EQ(place.run(profile + "--repeat 2").status, 0);
  const std::string whole = file_text(place / "runs/tiny/profile.json");
  const ProcessResult ran = place.run_until("INT", 4, profile + "--repeat 100000000 --json");
  EXPECT_EQ(ran.status, 130) << ran.err;
  EXPECT_NE(ran.err.find("nothing is written to runs/tiny"), std::string::npos) << ran.err;
  EXPECT_EQ(file_text(place / "runs/tiny/profile.json"), whole);
  const json made = json::parse(ran.out);
  EXPECT_EQ(made.at("complete"), false);
  EXPECT_GE(made.at("repeats"), 1);
  EXPECT_LT(made.at("repeats"), 100000000);
}

TEST(ProfileCommand, AStepThatDoesNotFitIsTheUsersError) {
  const CliFixture place;
  const ProcessResult ran = place.run("profile --config run.yaml --rows 64 --contexts 200");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(
      ran.err.find("medusa: --contexts: a step of 64 rows behind 200 tokens, expected at most "
                   "the 256 tokens of the context; lower --rows or --contexts, or raise "
                   "backbone.context\n"),
      std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace medusa::cli
