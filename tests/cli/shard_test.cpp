// medusa distill --shard and medusa dataset merge through the executable.
#include <map>
#include <nlohmann/json.hpp>

#include "program.h"

namespace medusa::cli {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = file_text(entry.path());
  return files;
}

TEST(Shard, PartsJoinToTheBytesOfOneProcess) {
  const CliFixture place;
  const auto succeed = [&](const std::string& arguments) {
    const ProcessResult ran = place.run(arguments + " --config run.yaml");
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  };
  succeed("distill");
  const auto whole = files_of(place / "runs/tiny/dataset");
  ASSERT_EQ(whole.size(), 3U);
  for (const char* part : {"1/2", "0/2"})
    succeed(std::string("distill --set run=runs/parts --shard ") + part);
  EXPECT_EQ(files_of(place / "runs/parts/dataset-0-of-2").size(), 2U);
  EXPECT_EQ(files_of(place / "runs/parts/dataset-1-of-2").size(), 1U);
  const auto merged = nlohmann::json::parse(succeed("dataset merge --json --set run=runs/parts"));
  EXPECT_EQ(merged.at("parts"), 2);
  EXPECT_EQ(merged.at("shards"), 3);
  EXPECT_EQ(merged.at("answers"), 12);
  EXPECT_EQ(files_of(place / "runs/parts/dataset"), whole);

  // Named in any order, into another run.
  succeed("dataset merge runs/parts/dataset-1-of-2 runs/parts/dataset-0-of-2 --set run=runs/other");
  EXPECT_EQ(files_of(place / "runs/other/dataset"), whole);
}

TEST(Shard, APartSaysWhatWillComeAndStartsAnew) {
  const CliFixture place;
  const std::string part = "distill --config run.yaml --shard 0/2";
  const ProcessResult first = place.run(part);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.err.find("distill: at most 6 prompts"), std::string::npos) << first.err;
  const auto files = files_of(place / "runs/tiny/dataset-0-of-2");

  const ProcessResult again = place.run(part);
  EXPECT_EQ(again.err.find("distill: at most"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("; 0 generated now"), std::string::npos) << again.err;

  write_text(place / "runs/tiny/dataset-0-of-2/shard-00009.h5", "of something else");
  const ProcessResult fresh =
      place.run(part + " --fresh --seed 4");  // another seed does not continue
  ASSERT_EQ(fresh.status, 0) << fresh.err;
  const auto anew = files_of(place / "runs/tiny/dataset-0-of-2");
  EXPECT_EQ(anew.size(), files.size());
  EXPECT_NE(anew, files);
}

TEST(Shard, WhatCannotWorkIsTheUsersError) {
  const CliFixture place;
  const auto error = [&](const std::string& arguments) {
    const ProcessResult ran = place.run(arguments + " --config run.yaml");
    EXPECT_EQ(ran.status, 2) << arguments;
    return ran.err.substr(ran.err.rfind("medusa: "));
  };
  EXPECT_EQ(error("distill --shard 2/2"),
            "medusa: --shard is '2/2', expected index/count with an index from 0 to count - 1; "
            "write 0/2 for the first of 2 parts\n");
  EXPECT_EQ(error("distill --shard first"),
            "medusa: --shard is 'first', expected index/count with an index from 0 to count - 1; "
            "write 0/4 for the first of 4 parts\n");
  EXPECT_EQ(error("distill --shard 0/2 --set distill.max_answer_tokens=100"),
            "medusa: distill.max_answer_tokens is 100 with --shard, found a limit that no part can "
            "count alone, expected 0; bound the prompts instead (distill.self_prompts, or the "
            "prompt files)\n");
  EXPECT_EQ(error("dataset merge"),
            "medusa: runs/tiny: holds no dataset-i-of-n, expected the parts of a dataset; name "
            "their folders, or run medusa distill --shard i/n first\n");
  EXPECT_EQ(error("dataset export"),
            "medusa: dataset export: found 0 files, expected one; name the file to write\n");
}

TEST(Shard, StatesEndAtTheirBudgetAndTrainingComputesTheRest) {
  const CliFixture place;
  const auto succeed = [&](const std::string& arguments) {
    const ProcessResult ran = place.run(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  };
  const auto inspected = [&](const std::string& run) {
    return nlohmann::json::parse(succeed("inspect --json runs/" + run + "/dataset"));
  };
  succeed("distill --config run.yaml");
  const auto whole = inspected("tiny");
  const double bytes =
      whole.at("answer_tokens").get<double>() * whole.at("hidden_size").get<double>();
  const std::string half = std::to_string(bytes / 1e6);  // of bfloat16's two bytes
  for (const std::string states : {"bfloat16", "int8"}) {
    succeed("distill --config run.yaml --set run=runs/" + states +
            " --set distill.states_dtype=" + states + " --set distill.states_budget_mb=" + half);
    const auto part = inspected(states);
    EXPECT_EQ(part.at("fingerprint"), whole.at("fingerprint"));
    EXPECT_EQ(part.at("hidden_states"), states);
    const double share =
        part.at("answer_tokens_with_states").get<double>() / part.at("answer_tokens").get<double>();
    EXPECT_GT(share, states == "int8" ? 0.8 : 0.3);
    EXPECT_LE(share, states == "int8" ? 0.999 : 0.5);
    succeed("train --config run.yaml --set run=runs/" + states);
    succeed("calibrate --config run.yaml --set run=runs/" + states);
  }
  const ProcessResult ran =
      place.run("distill --config run.yaml --shard 0/2 --set distill.states_budget_mb=1");
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("distill.states_budget_mb is 1 with --shard, found a limit that no part "
                         "can count alone, expected null; set record_hidden to false in all parts, "
                         "or states_dtype to int8"),
            std::string::npos)
      << ran.err;
}

// The key was read and written to the dataset's settings, and then nobody asked for it.
TEST(Shard, TheLimitOfAnswerTokensEndsTheDatasetWithTheShardThatReachesIt) {
  const CliFixture place;
  const ProcessResult ran =
      place.run("distill --config run.yaml --json --set distill.max_answer_tokens=100");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto report = nlohmann::json::parse(ran.out);
  EXPECT_EQ(report.at("complete"), true);
  EXPECT_EQ(report.at("samples"), 8) << "4 answers of at most 24 tokens do not reach it";
  EXPECT_EQ(files_of(place / "runs/tiny/dataset").size(), 2U);
}

}  // namespace
}  // namespace medusa::cli
