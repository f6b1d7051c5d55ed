// The main job through the executable, on the tiny trained model.
#include <map>
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

void expect_success(const ProcessResult& ran) { ASSERT_EQ(ran.status, 0) << ran.err; }

TEST(Pipeline, DistillTrainCalibrateGenerateCompareInspect) {
  const CliFixture place;
  const ProcessResult distilled = place.run("distill --config run.yaml --json");
  expect_success(distilled);
  EXPECT_EQ(json::parse(distilled.out).at("samples"), 12);
  expect_success(place.run("train --config run.yaml"));
  expect_success(place.run("calibrate --config run.yaml"));
  EXPECT_TRUE(std::filesystem::exists(place / "runs/tiny/heads/DONE"));

  const std::string ask = "generate --config run.yaml --json --prompt 'Once upon a time'";
  const ProcessResult medusa = place.run(ask),
                      plain = place.run(ask + " --set generate.drafter=none");
  expect_success(medusa);
  expect_success(plain);
  const json fast = json::parse(medusa.out).at("answers").at(0),
             slow = json::parse(plain.out).at("answers").at(0);
  EXPECT_EQ(fast.at("tokens"), slow.at("tokens"));
  EXPECT_EQ(fast.at("text"), slow.at("text"));
  EXPECT_EQ(fast.at("tokens").size(), 24U);
  EXPECT_LE(fast.at("stats").at("steps"), slow.at("stats").at("steps"));

  const ProcessResult compared =
      place.run("generate --config run.yaml --compare --questions prompts.jsonl --limit 3");
  expect_success(compared);
  EXPECT_NE(compared.out.find("3 / 3"), std::string::npos) << compared.out;
  const json numbers = json::parse(file_text(place / "runs/tiny/compare.json"));
  ASSERT_EQ(numbers.at("methods").size(), 5U);
  const auto heads = numbers.at("settings").at("heads").get<std::string>();
  EXPECT_NE(file_text(place / "runs/tiny/heads/manifest.yaml").find("fingerprint: " + heads),
            std::string::npos);
  expect_success(place.run("generate 'Once upon a time' --config run.yaml --compare"));
  EXPECT_EQ(numbers.at("methods").at(2).at("drafter"), "merge");
  EXPECT_EQ(numbers.at("methods").at(3).at("drafter"), "none");
  EXPECT_EQ(numbers.at("methods").at(4).at("rule"), "typical");
  EXPECT_EQ(numbers.at("methods").at(4).at("temperature"),
            numbers.at("methods").at(3).at("temperature"));
  for (const size_t i : {1, 2, 4}) {
    const json& method = numbers.at("methods").at(i);
    EXPECT_LE(method.at("speedup_95").at(0), method.at("speedup"));
    EXPECT_GE(method.at("speedup_95").at(1), method.at("speedup"));
  }
  EXPECT_EQ(numbers.at("methods").at(1).at("same_text"), 3);
  EXPECT_EQ(numbers.at("methods").at(2).at("same_text"), 3);
  const json& example = numbers.at("example").at("answers");
  ASSERT_EQ(example.size(), 3U) << "of the greedy methods";
  for (const json& answer : example) {
    std::string text, first;
    for (const json& step : answer.at("steps")) text += step.at(1).get<std::string>();
    for (const json& step : example[0].at("steps")) first += step.at(1).get<std::string>();
    EXPECT_EQ(text, first) << answer.at("method");
  }
  const std::string page = file_text(place / "runs/tiny/report.html");
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("medusa, greedy: 24 tokens in"), std::string::npos);

  for (const char* path : {"runs/tiny", "runs/tiny/dataset", "runs/tiny/heads",
                           "runs/tiny/tree.yaml", "runs/tiny/compare.json", "run.yaml"})
    expect_success(place.run(std::string("inspect ") + path));
}

TEST(Pipeline, SampledTextIsTheSameWithAndWithoutHeads) {
  const CliFixture place;
  for (const char* stage : {"distill", "train", "calibrate"})
    expect_success(place.run(std::string(stage) + " --config run.yaml"));
  const std::string ask =
      "generate --config run.yaml --json --prompt 'The dog' --set generate.temperature=0.8 --seed "
      "5";
  const ProcessResult medusa = place.run(ask),
                      plain = place.run(ask + " --set generate.drafter=none"),
                      other = place.run(ask + "5");
  expect_success(medusa);
  EXPECT_EQ(json::parse(medusa.out)["answers"][0]["tokens"],
            json::parse(plain.out)["answers"][0]["tokens"]);
  EXPECT_NE(json::parse(medusa.out)["answers"][0]["tokens"],
            json::parse(other.out)["answers"][0]["tokens"]);
}

TEST(Pipeline, ATemperatureTooSmallToDivideByGivesTheMostProbableText) {
  const CliFixture place;
  const std::string ask = "generate --config run.yaml --prompt 'The dog' --drafter ";
  const ProcessResult greedy = place.run(ask + "none");
  expect_success(greedy);
  for (const char* sampled :
       {"none --rule match --temperature 1e-300", "prompt_lookup --rule match --temperature 1e-45",
        "prompt_lookup --rule rejection --temperature 1e-300",
        "prompt_lookup --rule typical --temperature 1e-300",
        "none --rule match --temperature 1e-300 --top-k 5"}) {
    const ProcessResult ran = place.run(ask + sampled);
    expect_success(ran);
    EXPECT_EQ(ran.out, greedy.out) << sampled;
  }
}

TEST(Pipeline, StagesThatAreDoneAreNotRepeated) {
  const CliFixture place;
  expect_success(place.run("distill --config run.yaml"));
  const std::string before = file_text(place / "runs/tiny/dataset/shard-00000.h5");
  const ProcessResult again = place.run("distill --config run.yaml --json");
  expect_success(again);
  EXPECT_EQ(json::parse(again.out).at("generated"), 0);
  EXPECT_EQ(file_text(place / "runs/tiny/dataset/shard-00000.h5"), before);
}

/// All bytes below a folder, by name.
std::map<std::string, std::string> files_below(const std::filesystem::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) out[entry.path().string()] = file_text(entry.path());
  return out;
}

TEST(Pipeline, ATrainingThatIsDoneAndStartedAgainChangesNoByte) {
  const CliFixture place;
  expect_success(place.run("distill --config run.yaml"));
  const std::string train =
      "train --config run.yaml --set train.stages='[heads, joint]' --set train.keep_best=true "
      "--set train.joint.lora.rank=2 --set train.joint.batch_tokens=100 --set "
      "train.joint.guard.samples=2 --set train.joint.guard.greedy_tokens=8";
  expect_success(place.run(train));
  auto before = files_below(place / "runs/tiny");
  expect_success(place.run(train));
  auto after = files_below(place / "runs/tiny");
  const std::string page = (place / "runs/tiny/report.html").string();
  EXPECT_EQ(before.erase(page) + after.erase(page), 2U) << "which is written anew";
  EXPECT_GE(before.size(), 20U);
  for (const auto& [name, bytes] : before) EXPECT_TRUE(after[name] == bytes) << name;
  EXPECT_EQ(after.size(), before.size());
}

TEST(Pipeline, ADamagedCheckpointIsRefusedAndWhatIsThereStays) {
  const CliFixture place;
  for (const char* stage : {"distill", "train"})
    expect_success(place.run(std::string(stage) + " --config run.yaml"));
  const std::string state = (place / "runs/tiny/train/checkpoint/state.safetensors").string();
  const std::string whole = file_text(state);
  std::string damaged = whole;
  for (const size_t byte : {whole.size() / 2, whole.size() - 5})  // two numbers
    damaged[byte] = static_cast<char>(damaged[byte] ^ 8);
  write_text(state, damaged);
  const auto before = files_below(place / "runs/tiny");
  const ProcessResult ran = place.run("train --config run.yaml");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(
      ran.err.find("medusa: runs/tiny/train/checkpoint/state.safetensors: has the fingerprint "
                   "sha256:"),
      std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("; the checkpoint is damaged: put a copy of runs/tiny/train/checkpoint in "
                         "its place, or train anew with --fresh\n"),
            std::string::npos)
      << ran.err;
  EXPECT_TRUE(files_below(place / "runs/tiny") == before);
  write_text(state, whole);
  expect_success(place.run("train --config run.yaml"));
}

/// All shards, one after the other.
std::string dataset_bytes(const CliFixture& place) {
  std::string bytes;
  for (int shard = 0; shard < 3; ++shard)
    bytes += file_text(place / ("runs/tiny/dataset/shard-0000" + std::to_string(shard) + ".h5"));
  return bytes;
}

TEST(Pipeline, DistillationThatWasKilledEndsWithTheSameBytes) {
  const std::string distill =
      "distill --config run.yaml --set distill.max_new_tokens=200 --set distill.batch=1";
  const CliFixture unbroken, killed;
  expect_success(unbroken.run(distill));
  for (const double seconds : {0.4, 0.6, 0.8, 1.0}) killed.run_until("KILL", seconds, distill);
  expect_success(killed.run(distill));
  EXPECT_FALSE(dataset_bytes(unbroken).empty());
  EXPECT_TRUE(dataset_bytes(unbroken) == dataset_bytes(killed));
}

TEST(Pipeline, CtrlCEndsCleanlyAndKeepsWhatIsFinished) {
  const CliFixture place;
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "{\"text\": \"Once upon a time\"}\n";
  write_text(place / "many.jsonl", many);
  const ProcessResult stopped =
      place.run_until("INT", 4,
                      "distill --config run.yaml --set 'distill.prompts=[many.jsonl]' "
                      "--set distill.max_new_tokens=200");
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("interrupted; run the same command again to continue"),
            std::string::npos)
      << stopped.err;
}

TEST(Pipeline, LogprobsAndStopStrings) {
  const CliFixture place;
  const ProcessResult ran = place.run(
      "generate --config run.yaml --json --logprobs 3 --set generate.drafter=none --set "
      "'generate.stop=[Tom]' --prompt 'Once upon a time'");
  expect_success(ran);
  const json answer = json::parse(ran.out)["answers"][0];
  EXPECT_EQ(answer.at("finish"), "stop");
  EXPECT_EQ(answer.at("text").get<std::string>().find("Tom"), std::string::npos);
  ASSERT_EQ(answer.at("logprobs").size(), answer.at("tokens").size());
  for (size_t i = 0; i < answer["logprobs"].size();
       ++i) {  // greedy: the token is the most probable one
    EXPECT_EQ(answer["logprobs"][i]["top"][0]["id"], answer["tokens"][i]);
    EXPECT_LE(answer["logprobs"][i]["logprob"].get<double>(), 0.0);
    EXPECT_EQ(answer["logprobs"][i]["top"].size(), 3U);
  }
}

TEST(Pipeline, EveryDrafterWritesThePlainText) {
  const CliFixture place;
  for (const char* stage : {"distill", "train", "calibrate"})
    expect_success(place.run(std::string(stage) + " --config run.yaml"));
  const std::string ask =
      "generate --config run.yaml --json --prompt 'Once upon a time' --drafter ";
  const auto tokens = [&](const std::string& drafter) {
    const ProcessResult ran = place.run(ask + drafter);
    expect_success(ran);
    return ran.status == 0 ? json::parse(ran.out)["answers"][0]["tokens"] : json();
  };
  const json plain = tokens("none");
  EXPECT_EQ(plain.size(), 24U);
  for (const char* drafter :
       {"medusa", "blockwise", "prompt_lookup", "jacobi", "lookahead", "merge"})
    EXPECT_EQ(tokens(drafter), plain) << drafter;
  const ProcessResult unknown = place.run(ask + "medusae");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("medusae"), std::string::npos) << unknown.err;
  const ProcessResult pair = place.run(ask + "medusa --set generate.rule=blockwise");
  EXPECT_EQ(pair.status, 2);
  EXPECT_NE(
      pair.err.find("rule 'blockwise' with drafter 'medusa', expected drafter 'blockwise', "
                    "whose block it judges; use rule 'greedy' or 'typical' with this drafter"),
      std::string::npos)
      << pair.err;
}

TEST(Pipeline, TheContextEndsATextWithAWord) {
  const CliFixture place;
  const ProcessResult ran = place.run(
      "generate --config run.yaml --set backbone.context=16 --set generate.max_new_tokens=100 "
      "--set generate.drafter=none --prompt 'Once upon a time'");
  expect_success(ran);
  EXPECT_NE(ran.err.find("the context is full, which ended the text"), std::string::npos)
      << ran.err;
}

TEST(Pipeline, QuantizedTextsOfOddHeadSizesDependOnNoNeighbor) {
  const CliFixture place;
  const auto texts = [&](const std::string& options) {
    const ProcessResult ran = place.run(
        "generate --config run.yaml --questions prompts.jsonl --json --max-tokens 100 --dtype "
        "int8 " +
        options);
    expect_success(ran);
    std::vector<std::string> out;
    const json answers = json::parse(ran.out)["answers"];
    for (const json& answer : answers) out.push_back(answer["text"]);
    EXPECT_GT(out.size(), 8U);
    return out;
  };
  const std::vector<std::string> alone = texts("--drafter none --batch 1");
  EXPECT_EQ(texts("--drafter none --batch 5"), alone);
  EXPECT_EQ(texts("--drafter prompt_lookup --batch 5"), alone);
}

TEST(Pipeline, WeightsThatAreNotStoredInBlocksAreSaidToBecomeSome) {
  const CliFixture place;
  const std::string ask = "generate --config run.yaml --drafter none --prompt 'Once upon a time' ";
  const ProcessResult stored = place.run(ask + "--dtype stored"),
                      made = place.run(ask + "--dtype int8");
  expect_success(stored);
  expect_success(made);
  const std::string note = "note: not all matrices of " + CliFixture::model() +
                           " are stored in blocks; of the others blocks of 8 bits are made, as "
                           "--dtype int8 does\n";
  EXPECT_NE(stored.err.find(note), std::string::npos) << stored.err;
  EXPECT_EQ(made.err.find("note: "), std::string::npos) << made.err;
  EXPECT_EQ(stored.out, made.out);
}

}  // namespace
}  // namespace medusa::cli
