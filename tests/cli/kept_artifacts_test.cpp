// Artifacts of earlier versions (tools/dev/keep_artifacts.py): this version reads them, or refuses
// them with the command that converts them.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::vector<std::string> kept_versions() {
  std::vector<std::string> out;
  for (const auto& each : fs::directory_iterator(MEDUSA_SOURCE_DIR "/tests/golden/artifacts"))
    out.push_back(each.path().filename());
  return out;
}

class KeptArtifacts : public testing::TestWithParam<std::string> {
 protected:
  KeptArtifacts() {
    fs::copy(MEDUSA_SOURCE_DIR "/tests/golden/artifacts/" + GetParam(), place_ / ".",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    fs::copy(CliFixture::model(), place_ / "model.gguf");
  }
  std::string succeed(const std::string& arguments) const {
    const ProcessResult ran = place_.run(arguments);
    EXPECT_EQ(ran.status, 0) << arguments << "\n" << ran.err;
    return ran.out;
  }
  json inspect(const std::string& artifact) const {
    return json::parse(succeed("inspect --json run/" + artifact));
  }

  CliFixture place_;
};

TEST_P(KeptArtifacts, EachIsKnownForWhatItIs) {
  const std::map<std::string, std::string> kinds{
      {"dataset", "dataset"},
      {"heads", "trained heads"},
      {"tree.yaml", "choice tree"},
      {"store.safetensors", "text store"},
      {"train/checkpoint", "training checkpoint"},
      {"bench.json", "bench"},
      {"bench.jsonl", "answers of a bench"},
      {"compare.json", "comparison"},
  };
  for (const auto& [artifact, kind] : kinds) EXPECT_EQ(inspect(artifact)["kind"], kind);
  EXPECT_EQ(inspect("dataset")["num_answers"], 6);
  EXPECT_EQ(inspect("heads")["fingerprint"], inspect("tree.yaml")["heads"]);
  EXPECT_EQ(inspect("tree.yaml")["num_nodes"], 6);
}

TEST_P(KeptArtifacts, HeadsTreeAndStoreDecode) {
  const auto texts = [&](const std::string& drafter) {
    std::vector<std::string> out;
    const json all = json::parse(succeed(
        "generate --config run.yaml --json --questions prompts.jsonl --drafter " + drafter));
    for (const json& each : all["answers"]) out.push_back(each["text"]);
    return out;
  };
  const auto plain = texts("none");
  EXPECT_EQ(plain.size(), 6U);
  EXPECT_EQ(texts("medusa"), plain);
  EXPECT_EQ(texts("retrieval"), plain);
}

TEST_P(KeptArtifacts, AFinishedCheckpointGivesItsHeadsAgain) {
  const std::string heads = file_text(place_ / "run/heads/heads.safetensors");
  ASSERT_FALSE(heads.empty());
  fs::remove_all(place_ / "run/heads");
  // Heads are stored as the model computes, and auto is float32 where the CPU has no bfloat16.
  succeed("train --config run.yaml --dtype bfloat16");
  EXPECT_EQ(file_text(place_ / "run/heads/heads.safetensors"), heads);
}

TEST_P(KeptArtifacts, TheDatasetIsTrainedOnAndTheReportShowsTheRun) {
  succeed("distill --config run.yaml");  // nothing is left to do
  EXPECT_EQ(inspect("dataset")["num_answers"], 6);
  succeed("train --config run.yaml --fresh");
  succeed("report --config run.yaml");
  EXPECT_NE(file_text(place_ / "run/report.html").find("medusa"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Versions, KeptArtifacts, testing::ValuesIn(kept_versions()),
                         [](const auto& version) {
                           std::string name = version.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return "v" + name;
                         });

}  // namespace
}  // namespace medusa::cli
