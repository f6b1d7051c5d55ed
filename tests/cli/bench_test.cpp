// medusa bench through the executable, on the tiny trained model.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

constexpr const char* kBench =
    "bench --config run.yaml --questions prompts.jsonl --methods medusa ";

class Bench : public TrainedRun {
 protected:
  json summary(const std::string& folder = "runs/tiny") const {
    return json::parse(file_text(place_ / (folder + "/bench.json")));
  }

  std::vector<json> answers(const std::string& folder = "runs/tiny") const {
    std::istringstream in(file_text(place_ / (folder + "/bench.jsonl")));
    std::vector<json> out;
    for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
    return out;
  }
};

TEST_F(Bench, MeasuresMethodsAgainstPlainDecodingAndKeepsEveryAnswer) {
  const ProcessResult ran =
      place_.run(std::string(kBench) + "--temperature 0,0.7 --limit 3 --repeat 2");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("temperature 0.7"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("3 / 3"), std::string::npos) << ran.out;

  const json result = summary();
  EXPECT_EQ(result.at("complete"), true);
  ASSERT_EQ(result.at("rows").size(), 4U);  // none and medusa at two temperatures
  for (const json& row : result["rows"]) {
    EXPECT_EQ(row.at("num_questions"), 3);
    EXPECT_EQ(row.at("num_samples"), 6);
    EXPECT_GT(row.at("tokens_per_s"), 0.0);
    EXPECT_GT(row.at("peak_bytes"), 1000000);
    EXPECT_NEAR(row.at("speedup").get<double>(),
                row.at("tokens_per_step").get<double>() / row.at("step_overhead").get<double>() /
                    result["rows"][0].at("tokens_per_step").get<double>(),
                1e-9);
  }
  EXPECT_EQ(result["rows"][1].at("method"), "medusa");
  EXPECT_EQ(result["rows"][1].at("same_text"), 3);
  EXPECT_EQ(result["rows"][3].at("rule"), "match");
  EXPECT_EQ(result["rows"][3].at("same_text"), 3);

  const std::vector<json> lines = answers();
  ASSERT_EQ(lines.size(), 24U);  // 2 temperatures, 2 methods, 3 questions, 2 repeats
  for (const json& line : lines) {
    EXPECT_EQ(line.at("answers").at(0).at("tokens").size(), 24U);
    EXPECT_GT(line["answers"][0].at("verify_s"), 0.0);
  }
  const std::string page = file_text(place_ / "runs/tiny/bench.html");
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("<a href=\"report.html\">"), std::string::npos);
  EXPECT_NE(file_text(place_ / "runs/tiny/report.html").find("<a href=\"bench.html\">"),
            std::string::npos)
      << "the run's page knows what was measured since";
  const ProcessResult profiled =
      place_.run("profile --config run.yaml --rows 1 --repeat 1 --contexts 32");
  ASSERT_EQ(profiled.status, 0) << profiled.err;
  EXPECT_NE(file_text(place_ / "runs/tiny/report.html").find("<a href=\"profile.html\">"),
            std::string::npos);
  const std::string profile = file_text(place_ / "runs/tiny/profile.html");
  for (const char* other : {"report.html", "bench.html"})
    EXPECT_NE(profile.find("<a href=\"" + std::string(other) + "\">"), std::string::npos);
}

TEST_F(Bench, QuestionsDecodedAtTheSameTimeHaveTheirOwnTexts) {
  write_text(place_ / "talk.jsonl",
             R"({"id": "a", "turns": ["Once upon a time", "And then?"], "category": "x"}
{"id": "b", "turns": ["The big dog"], "category": "y"}
{"id": "c", "turns": ["Mom said", "Why?"], "category": "y"}
)");
  const std::string bench =
      "bench --config run.yaml --questions talk.jsonl --methods medusa --temperature 0.7 "
      "--dtype float32 ";
  ASSERT_EQ(place_.run(bench + "--out alone").status, 0);
  const ProcessResult ran = place_.run(bench + "--out both --slots 2");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto tokens_of = [&](const std::string& folder) {
    std::map<std::string, std::vector<json>> found;
    for (const json& line : answers(folder))
      for (const json& answer : line.at("answers"))
        found[line.at("method")].push_back(answer.at("tokens"));
    return found;
  };
  EXPECT_EQ(tokens_of("both"), tokens_of("alone"));
  const std::vector<json> lines = answers("both");
  ASSERT_EQ(lines.size(), 4U) << "two methods, a pair and a question by itself";
  EXPECT_EQ(lines[0].at("id"), "a+b");
  EXPECT_EQ(lines[0].at("category"), "mixed");
  EXPECT_EQ(summary("both").at("rows").back().at("num_questions"), 2);
  EXPECT_EQ(ran.out.find("partial"), std::string::npos) << ran.out;
  const ProcessResult other = place_.run(bench + "--out both --slots 3");
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("measured with slots 2, this run has 3"), std::string::npos)
      << other.err;
}

TEST_F(Bench, LaterTurnsAreAskedAfterTheModelsOwnAnswers) {
  write_text(place_ / "talk.jsonl",
             R"({"turns": ["Once upon a time", "And then?"], "category": "a"})"
             "\n");
  const ProcessResult ran = place_.run(
      "bench --config run.yaml --questions talk.jsonl --methods medusa --out talk --json");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("rows").at(1).at("same_text"), 1);
  for (const json& line : answers("talk")) {
    ASSERT_EQ(line.at("answers").size(), 2U);
    // The second prompt holds the first answer: it is longer by more than itself.
    EXPECT_NE(line["answers"][0].at("tokens"), line["answers"][1].at("tokens"));
  }
  // Where the context is full after the first answer, the conversation ends there.
  const ProcessResult ended = place_.run(
      "bench --config run.yaml --questions talk.jsonl --methods medusa --out short "
      "--set backbone.context=32");
  ASSERT_EQ(ended.status, 0) << ended.err;
  for (const json& line : answers("short")) EXPECT_EQ(line.at("answers").size(), 1U);
}

TEST_F(Bench, AFolderHoldsOneModelDtypeThreadsAndLimits) {
  ASSERT_EQ(place_.run(std::string(kBench) + "--limit 1").status, 0);
  const std::string before = file_text(place_ / "runs/tiny/bench.jsonl");
  const ProcessResult other =
      place_.run(std::string(kBench) + "--limit 1 --set generate.max_new_tokens=7");
  EXPECT_EQ(other.status, 2);
  EXPECT_EQ(other.err.substr(std::min(other.err.find("medusa: "), other.err.size())),
            "medusa: runs/tiny/bench.json: measured with max_new_tokens 24, this run has 7, "
            "expected the same max_new_tokens for all that is compared in a folder; give another "
            "folder with --out, or leave out what was measured there with --fresh\n");
  EXPECT_EQ(file_text(place_ / "runs/tiny/bench.jsonl"), before);
  // The same conditions again: what is measured anew replaces the old, the rest stays.
  ASSERT_EQ(place_
                .run("bench --config run.yaml --questions prompts.jsonl --limit 1 "
                     "--methods none --temperature 0.7")
                .status,
            0);
  EXPECT_EQ(answers().size(), 3U);
  EXPECT_EQ(summary().at("rows").size(), 3U);
}

TEST_F(Bench, OtherHeadsAndSettingsAreNotMixedWithWhatAFolderHolds) {
  const std::string bench =
      "bench --config run.yaml --questions prompts.jsonl --limit 1 --methods ";
  ASSERT_EQ(place_.run(bench + "medusa --temperature 0.7 --rule typical").status, 0);
  ASSERT_EQ(place_.run(bench + "medusa --temperature 0.7 --rule rejection").status, 0);
  EXPECT_EQ(summary().at("rows").size(), 3U) << "none, and medusa by two rules";
  ASSERT_EQ(place_.run(bench + "prompt_lookup").status, 0);
  const std::string before = file_text(place_ / "runs/tiny/bench.jsonl");
  const auto refused = [&](const std::string& arguments, const std::string& name) {
    const ProcessResult ran = place_.run(bench + arguments);
    EXPECT_EQ(ran.status, 2) << arguments;
    EXPECT_NE(ran.err.find("expected the same " + name + " for all"), std::string::npos) << ran.err;
    EXPECT_EQ(file_text(place_ / "runs/tiny/bench.jsonl"), before);
  };
  refused("prompt_lookup --set generate.prompt_lookup.num_draft=3", "settings of prompt_lookup");
  refused("medusa --temperature 0.7 --rule typical --set generate.epsilon=0.4",
          "typical acceptance");
  refused("prompt_lookup --set generate.graphs=false", "graphs");
  ASSERT_EQ(place_.run("train --config run.yaml --fresh --set train.epochs=3").status, 0);
  ASSERT_EQ(place_.run("calibrate --config run.yaml").status, 0);
  refused("merge", "heads");
  ASSERT_EQ(place_.run(bench + "lookahead").status, 0) << "has no heads";
  ASSERT_EQ(place_.run(bench + "merge --fresh").status, 0);
  EXPECT_EQ(summary().at("rows").size(), 2U);
}

TEST_F(Bench, AMethodThatCannotRunSaysWhyAndTheOthersGoOn) {
  const ProcessResult ran = place_.run(
      "bench --config run.yaml --questions prompts.jsonl --methods prompt_lookup,medusa --limit 2 "
      "--out here --json --tree missing.yaml");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json result = json::parse(ran.out);
  ASSERT_EQ(result.at("rows").size(), 2U);
  EXPECT_EQ(result["rows"][0].at("method"), "none");
  EXPECT_EQ(result["rows"][1].at("method"), "prompt_lookup");
  ASSERT_EQ(result.at("failed").size(), 1U);
  EXPECT_EQ(result["failed"][0].at("method"), "medusa");
  EXPECT_EQ(
      result["failed"][0].at("reason"),
      "missing.yaml: no such file, expected the choice tree that drafter 'medusa' fills; make it "
      "with medusa calibrate, or decode without: --drafter prompt_lookup");
  EXPECT_NE(ran.err.find("note: method 'medusa' at temperature 0 is left out: missing.yaml"),
            std::string::npos)
      << ran.err;
}

TEST_F(Bench, WithoutAMethodThatCanRunItEndsBeforeTheModelIsLoaded) {
  const ProcessResult ran = place_.run(std::string(kBench) + "--limit 2 --tree missing.yaml");
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err,
            "medusa: missing.yaml: no such file, expected the choice tree that drafter 'medusa' "
            "fills; make it with medusa calibrate, or decode without: --drafter prompt_lookup\n");
}

TEST_F(Bench, PrintsAPageOfBenchmarks) {
  const ProcessResult ran =
      place_.run(std::string(kBench) + "--limit 2 --markdown --max-tokens 8 --rule greedy");
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"# ", "| date | 20", "| program | medusa 0.", "| machine | ",
                           "| `none` | ", "| `medusa` | ",
                           "bench --config run.yaml --questions prompts.jsonl --methods medusa "
                           "--rule greedy --limit 2 --max-tokens 8\n"})
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  EXPECT_NE(ran.err.find("bench: warm up"), std::string::npos) << ran.err;
}

TEST_F(Bench, StartedFreshItLeavesOutWhatWasMeasuredBefore) {
  ASSERT_EQ(place_.run(std::string(kBench) + "--limit 1").status, 0);
  const ProcessResult other = place_.run(std::string(kBench) + "--limit 1 --max-tokens 7 --fresh");
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(answers().size(), 2U);
  // What cannot run leaves them where they are.
  const std::string before = file_text(place_ / "runs/tiny/bench.jsonl");
  const ProcessResult none = place_.run(
      "bench --config run.yaml --questions prompts.jsonl --methods layer_skip --limit 1 --fresh");
  EXPECT_EQ(none.status, 2) << none.err;
  EXPECT_EQ(file_text(place_ / "runs/tiny/bench.jsonl"), before);
}

TEST_F(Bench, CtrlCKeepsWhatWasMeasuredAndSaysThatItIsPartial) {
  ProcessResult ran;
  for (const double seconds : {2.0, 10.0, 50.0}) {  // later where the machine is busy
    ran = place_.run_until("INT", seconds, std::string(kBench) + "--repeat 100000 --threads 1");
    EXPECT_EQ(ran.status, 130) << ran.err;
    if (answers().size() >= 2) break;
  }
  EXPECT_NE(ran.out.find("interrupted: only the rounds so far (partial)"), std::string::npos)
      << ran.out << ran.err;
  EXPECT_EQ(summary().at("complete"), false);
  std::map<std::string, int> samples;
  for (const json& line : answers()) {
    ++samples[line.at("method")];
    EXPECT_EQ(line.at("answers").at(0).at("tokens").size(), 24U);  // none that was cut off
  }
  EXPECT_GT(samples["none"], 0);
  EXPECT_LE(std::abs(samples["none"] - samples["medusa"]), 1) << "the round that was cut off";
}

TEST(BenchOptions, WrongNamesAreTheUsersErrors) {
  const CliFixture place;
  const std::string bench = "bench --config run.yaml --questions prompts.jsonl ";
  const ProcessResult unknown = place.run(bench + "--methods none,medsua");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.err.rfind("medusa: --methods is 'medsua' (did you mean 'medusa'?), expected "
                              "one of none | medusa",
                              0),
            0U)
      << unknown.err;
  const ProcessResult twice = place.run(bench + "--methods medusa,none,medusa");
  EXPECT_EQ(twice.err,
            "medusa: --methods: 'medusa' is given twice, expected each method once; remove one\n");
  const ProcessResult temperature = place.run(bench + "--temperature 0.5,0,0.5");
  EXPECT_EQ(temperature.err,
            "medusa: --temperature: a temperature is given twice, expected each once; remove "
            "one\n");
  const ProcessResult rule = place.run(bench + "--rule tipical");
  EXPECT_EQ(rule.status, 2);
  EXPECT_EQ(rule.err.rfind("medusa: --rule is 'tipical' (did you mean 'typical'?), expected one of "
                           "auto",
                           0),
            0U)
      << rule.err;
}

TEST(BenchQuestions, TheShippedFileHasTwentyInSixCategories) {
  std::istringstream in(file_text(MEDUSA_SOURCE_DIR "/configs/bench_questions.jsonl"));
  std::map<std::string, int> categories, ids;
  for (std::string line; std::getline(in, line);) {
    const json question = json::parse(line);
    ++categories[question.at("category")];
    ++ids[question.at("id")];
  }
  EXPECT_EQ(categories.size(), 6U);
  EXPECT_EQ(ids.size(), 20U);
}

}  // namespace
}  // namespace medusa::cli
