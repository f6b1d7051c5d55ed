// medusa build-store and the drafter that reads its file, through the executable.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

class BuildStore : public DistilledRun {
 protected:
  json built(const std::string& options) const {
    const ProcessResult ran = place_.run("build-store --config run.yaml --json " + options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out);
  }
};

TEST_F(BuildStore, HoldsTheTextsThatAreTrainedOnUnlessToldOtherwise) {
  const json training = built(""), all = built("--all --set generate.retrieval.store=all");
  EXPECT_EQ(training.at("store"), "runs/tiny/store.safetensors");
  EXPECT_EQ(training.at("samples"), "training");
  EXPECT_EQ(all.at("samples"), "all");
  const json dataset = json::parse(place_.run("inspect runs/tiny/dataset --json").out);
  EXPECT_EQ(all.at("texts"), dataset.at("num_answers"));
  EXPECT_LT(training.at("texts").get<int>(), all.at("texts").get<int>());
  const json found = json::parse(place_.run("inspect runs/tiny/store.safetensors --json").out);
  EXPECT_EQ(found.at("kind"), "text store");
  EXPECT_EQ(found.at("num_texts"), training.at("texts"));
  EXPECT_EQ(found.at("num_tokens"), training.at("tokens"));
}

TEST_F(BuildStore, TheDrafterFindsItAndTheTextStaysPlain) {
  built("--all");
  const auto tokens = [&](const std::string& drafter) {
    const ProcessResult ran =
        place_.run("generate --config run.yaml --json --prompt 'Once upon a time' " +
                   std::string("--drafter ") + drafter);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out).at("answers").at(0);
  };
  const json plain = tokens("none"), retrieval = tokens("retrieval");
  EXPECT_EQ(retrieval.at("tokens"), plain.at("tokens"));
  EXPECT_GT(retrieval.at("stats").at("proposed"), 0);
}

TEST_F(BuildStore, AStoreThatIsMissingOrDamagedIsTheUsersError) {
  const std::string generate =
      "generate --config run.yaml --prompt Once --drafter retrieval --set "
      "generate.max_new_tokens=2";
  const ProcessResult missing = place_.run(generate);
  EXPECT_EQ(missing.status, 2);
  EXPECT_NE(
      missing.err.find("medusa: runs/tiny/store.safetensors: no such file, expected the texts "
                       "that the retrieval drafter looks up; build it with medusa "
                       "build-store\n"),
      std::string::npos)
      << missing.err;
  built("");
  const std::string bytes = file_text(place_ / "runs/tiny/store.safetensors");
  const std::string name = "\"tokenizer\":\"sha256:";
  std::string other = bytes;
  other[other.find(name) + name.size()] ^= 1;  // its checksum is wrong, then, too
  for (const std::string& damaged : {bytes.substr(0, bytes.size() - 4), other}) {
    write_text(place_ / "runs/tiny/store.safetensors", damaged);
    const ProcessResult ran = place_.run(generate);
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.err.find("medusa: runs/tiny/store.safetensors: "), std::string::npos) << ran.err;
  }
}

}  // namespace
}  // namespace medusa::cli
