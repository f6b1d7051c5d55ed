// medusa train with the joint stage, and decoding with what it leaves, through the executable.
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

using nlohmann::json;

constexpr const char* kJoint =
    "train --config run.yaml --set train.stages='[heads, joint]' --set train.joint.lora.rank=4 "
    "--set train.joint.batch_tokens=100 --set train.joint.learning_rate=0.001 --set "
    "train.joint.guard.samples=2 --set train.joint.guard.greedy_tokens=8 --set "
    "train.joint.lora.targets='[q_proj, down_proj, lm_head]' ";

class Joint : public DistilledRun {
 protected:
  json inspected(const std::string& artifact) const {
    const ProcessResult ran = place_.run("inspect --json " + artifact);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out);
  }
};

TEST_F(Joint, TheTunedModelIsCalibratedAndDecodesAsItself) {
  const ProcessResult trained = place_.run(std::string(kJoint) + "--json");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const json joint = json::parse(trained.out).at("joint");
  EXPECT_EQ(joint.at("complete"), true);
  EXPECT_EQ(joint.at("stopped"), "");
  EXPECT_EQ(joint.at("model"), "runs/tiny/joint/model");
  EXPECT_GT(joint.at("steps"), 1);
  EXPECT_GT(joint.at("guard_kl_nats"), 0);

  const std::string tuned =
      " --config run.yaml --set backbone.model=runs/tiny/joint/model --set "
      "generate.heads=runs/tiny/joint/heads --set generate.tree=runs/tiny/joint/tree.yaml ";
  const ProcessResult calibrated = place_.run("calibrate" + tuned);
  ASSERT_EQ(calibrated.status, 0) << calibrated.err;
  const auto answered = [&](const std::string& options) {
    const ProcessResult ran =
        place_.run("generate --json --prompt 'Once upon a time'" + tuned + options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out).at("answers").at(0).at("tokens");
  };
  EXPECT_EQ(answered("--drafter medusa"), answered("--drafter none"));

  // Asking again changes nothing.
  const auto written = [&] {
    std::string all;
    for (const char* file : {"model/model.safetensors", "model/tuned.json", "model/config.json",
                             "heads/heads.safetensors", "heads/manifest.yaml"})
      all += file_text(place_ / ("runs/tiny/joint/" + std::string(file)));
    return all;
  };
  const std::string before = written();
  ASSERT_EQ(place_.run(kJoint).status, 0);
  EXPECT_EQ(written(), before);

  const std::string page = file_text(place_ / "runs/tiny/report.html");
  EXPECT_NE(page.find("Distance from what it was"), std::string::npos) << "written by train";
  EXPECT_EQ(page.find("http-equiv"), std::string::npos) << "training has ended";

  for (const auto& entry : std::filesystem::recursive_directory_iterator(place_ / "runs/tiny"))
    EXPECT_FALSE(inspected(entry.path().string()).at("summary").get<std::string>().empty())
        << entry.path();
  const json from = inspected("runs/tiny/joint/model").at("tuned_from");
  EXPECT_EQ(from.at("steps"), joint.at("steps"));
  EXPECT_EQ(from.at("heads"), inspected("runs/tiny/heads").at("fingerprint"))
      << "it began with the heads of the stage before";
  EXPECT_EQ(from.at("dataset"), inspected("runs/tiny/dataset").at("fingerprint"));
  EXPECT_EQ(from.at("drift").at("guard_kl_nats"), joint.at("guard_kl_nats"));
}

TEST_F(Joint, WhatTheGuardStoppedIsTheLastGoodModel) {
  const ProcessResult ran =
      place_.run(std::string(kJoint) + "--json --set train.joint.guard.max_kl=0.00000001");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json joint = json::parse(ran.out).at("joint");
  EXPECT_EQ(joint.at("complete"), true);
  EXPECT_EQ(joint.at("steps"), 0);
  const auto reason = joint.at("stopped").get<std::string>();
  EXPECT_TRUE(reason.starts_with("KL ")) << reason;
  EXPECT_NE(ran.err.find("stopped by the guard: " + reason + "; this is the checkpoint of step 0"),
            std::string::npos)
      << ran.err;
  const json from = inspected("runs/tiny/joint/model").at("tuned_from");
  EXPECT_EQ(from.at("stopped"), reason);
  EXPECT_NEAR(from.at("drift").at("guard_kl_nats"), 0, 1e-6);
}

TEST_F(Joint, GoingOnWithOtherThreadsIsSaid) {
  const auto until = [&](const std::string& state, const std::string& options) {
    const ProcessResult ran =
        place_.run(std::string(kJoint) + "--set train.joint.epochs=9999 " + options +
                   " >joint.txt 2>joint-err.txt & pid=$!; for i in $(seq 1200); do " + state +
                   " && break; sleep 0.05; done; kill $pid; wait $pid");
    EXPECT_EQ(ran.status, 143);
    return file_text(place_ / "joint-err.txt");
  };
  const std::string note = "note: --threads was 1 when this training was interrupted and is 2, ";
  const std::string begun = until("test -e runs/tiny/joint/train/checkpoint/DONE", "--threads 1");
  EXPECT_EQ(begun.find("--threads was"), std::string::npos) << begun;
  const std::string other = until("grep -q '^note: --threads was' joint-err.txt", "--threads 2");
  EXPECT_NE(other.find(note), std::string::npos) << other;
}

TEST_F(Joint, ADryRunSaysWhatItTakesAndWritesNothing) {
  const ProcessResult ran = place_.run(std::string(kJoint) + "--dry-run");
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {" prompt tokens without a loss, ", "[[",
                           "stage heads: ", "stage joint: ", "  memory: about ", "  disk: about ",
                           "  time: about ", "knowing nothing (ln V) 6.24; heads "})
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  EXPECT_EQ(ran.out.find("encodes to other tokens"), std::string::npos) << "they are its own\n"
                                                                        << ran.out;
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/tiny/train"));
  EXPECT_FALSE(std::filesystem::exists(place_ / "runs/tiny/joint"));
  const ProcessResult as_json = place_.run(std::string(kJoint) + "--dry-run --json");
  ASSERT_EQ(as_json.status, 0) << as_json.err;
  const json flight = json::parse(as_json.out);
  EXPECT_GT(flight.at("joint").at("memory_bytes"), flight.at("heads").at("parameters"));
  EXPECT_LT(flight.at("heads").at("lm_head_loss_nats"), 3) << "it wrote these answers itself";
  EXPECT_TRUE(flight.at("heads").at("warnings").empty()) << as_json.out;
}

TEST_F(Joint, WhatCannotWorkIsTheUsersError) {
  const auto error = [&](const std::string& options) {
    const ProcessResult ran = place_.run("train --config run.yaml " + options);
    EXPECT_EQ(ran.status, 2) << options;
    return ran.err.substr(ran.err.rfind("medusa: "));
  };
  EXPECT_EQ(error("--set train.stages='[joint]' --set train.joint.lora.targets='[w1]'"),
            "medusa: train.joint.lora.targets: found 'w1', expected some of q_proj, k_proj, "
            "v_proj, o_proj, gate_proj, up_proj, down_proj, lm_head; correct the name\n");
  EXPECT_EQ(error("--set train.stages='[joint, heads]'"),
            "medusa: train.stages is [joint, heads], found heads behind joint, expected it before: "
            "heads alone learn from the backbone as it was, not from what joint made of it; write "
            "[heads, joint]\n");
  EXPECT_EQ(error("--set train.stages='[joint]' --set train.begin_with=run/heads"),
            "medusa: train.begin_with names heads for the stage heads, train.stages is [joint], "
            "expected heads among the stages; name them in train.joint.heads\n");
  const std::string size =
      "medusa: heads: 'output_size' is 8192, the backbone's vocabulary has 512 tokens, expected at "
      "most that many; lower it, or set 'output' to shared or own\n";
  for (const char* dry : {"", "--dry-run "})
    EXPECT_EQ(error(dry + std::string("--set train.stages=[joint] --set train.heads.output="
                                      "truncated_shared --set train.heads.output_size=8192")),
              size);
  // Heads of another backbone are refused as by every other command.
  ASSERT_EQ(place_.run(kJoint).status, 0);
  const std::string wrong =
      error("--set train.stages='[joint]' --set train.joint.heads=runs/tiny/joint/heads");
  EXPECT_NE(wrong.find("runs/tiny/joint/heads"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace medusa::cli
