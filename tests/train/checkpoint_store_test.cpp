#include "train/record/checkpoint_store.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/file.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 5;  // of a whole run

/// One parameter that a step moves by about 0.1.
struct StoredRun {
  explicit StoredRun(const fs::path& folder, int64_t keep = 1, RunIdentity identity = {"seed=1"})
      : optimizer({{"weight", weight}}),
        store(folder, std::move(identity), {{"weight", weight}}, optimizer, keep) {}
  void step() {
    weight.mutable_grad() = at::ones_like(weight);
    optimizer.step(0.1, 0, 1e9);
  }
  float value() const { return weight[0].item<float>(); }

  at::Tensor weight = at::zeros({4});
  AdamW optimizer;
  CheckpointStore store;
};

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

TEST(CheckpointStore, KeepsTheLastOnes) {
  const fixtures::TempFolder folder;
  StoredRun run(folder.path(), 3);
  EXPECT_FALSE(run.store.has_one());
  std::vector<float> values;
  for (int i = 0; i < 5; ++i) {
    run.step();
    values.push_back(run.value());
    run.store.save();
  }
  EXPECT_EQ(names_in(folder.path()),
            (std::set<std::string>{"checkpoint", "checkpoint-00000003", "checkpoint-00000004",
                                   "checkpoint-00000005"}));
  // Each is whole: put in the last one's place, a run goes on from it.
  fs::remove_all(folder / "checkpoint");
  fs::rename(folder / "checkpoint-00000004", folder / "checkpoint");
  StoredRun again(folder.path(), 3);
  EXPECT_EQ(again.store.load(kSteps), 4);
  EXPECT_EQ(again.value(), values[3]);
  again.step();
  EXPECT_EQ(again.value(), values[4]);
}

// The kill came between the two.
TEST(CheckpointStore, TheNextRunGivesTheLastOneTheNameThatAKillKeptFromIt) {
  const fixtures::TempFolder folder;
  {
    StoredRun run(folder.path(), 2);
    run.step();
    run.store.save();
    fs::remove_all(folder / "checkpoint-00000001");
  }
  StoredRun run(folder.path(), 2);
  EXPECT_EQ(run.store.load(kSteps), 1);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"checkpoint", "checkpoint-00000001"}));
  EXPECT_TRUE(has_checkpoint(folder / "checkpoint-00000001"));
}

TEST(CheckpointStore, OneAloneHasNoOthersBesideIt) {
  const fixtures::TempFolder folder;
  {
    StoredRun run(folder.path(), 2);
    for (int i = 0; i < 3; ++i) {
      run.step();
      run.store.save();
    }
  }
  StoredRun run(folder.path());
  EXPECT_EQ(run.store.load(kSteps), 3);
  run.step();
  run.store.save();
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"checkpoint"});
}

TEST(CheckpointStore, TheBestIsTheFirstOfTheHighestScore) {
  const fixtures::TempFolder folder;
  StoredRun run(folder.path());
  EXPECT_FALSE(run.store.load_best());
  std::vector<float> values;
  for (const double score : {1.5, 2.0, 1.75, 2.0}) {
    run.step();
    values.push_back(run.value());
    run.store.offer(score);
    run.store.save();
  }
  EXPECT_EQ(run.store.load_best(), 2);
  EXPECT_EQ(run.value(), values[1]);
  StoredRun other(folder.path(), 1, {"seed=2"});
  EXPECT_EQ(fixtures::error_text(folder, [&] { other.store.load_best(); }),
            "<>/checkpoint-best: the checkpoint was made with seed 1, this run has seed 2, "
            "expected the same; set it back to continue, or train anew with --fresh");
}

TEST(CheckpointStore, ARunFromTheStartForgetsTheBestOfAnother) {
  const fixtures::TempFolder folder;
  {
    StoredRun run(folder.path());
    run.step();
    run.store.offer(9);
  }
  StoredRun run(folder.path());
  EXPECT_EQ(run.store.load(kSteps), 0);
  EXPECT_FALSE(run.store.load_best());
}

void damage(const fs::path& checkpoint) {
  std::fstream(checkpoint / "state.safetensors", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put('x');
}

TEST(CheckpointStore, ADamagedOneIsRefusedAndTheOthersStay) {
  const fixtures::TempFolder folder;
  std::vector<float> values;
  {
    StoredRun run(folder.path(), 3);
    for (int i = 0; i < 4; ++i) {
      run.step();
      values.push_back(run.value());
      run.store.offer(i);
      run.store.save();
    }
  }
  const std::set<std::string> before = names_in(folder.path());
  damage(folder / "checkpoint");
  {
    StoredRun run(folder.path(), 3);
    const std::string error = fixtures::error_text(folder, [&] { run.store.load(kSteps); });
    EXPECT_TRUE(error.starts_with("<>/checkpoint/state.safetensors: has the fingerprint "))
        << error;
    EXPECT_EQ(run.value(), 0);
  }
  EXPECT_EQ(names_in(folder.path()), before);
  fs::remove_all(folder / "checkpoint");
  fs::rename(folder / "checkpoint-00000003", folder / "checkpoint");
  StoredRun run(folder.path(), 3);
  EXPECT_EQ(run.store.load(kSteps), 3);
  EXPECT_EQ(run.value(), values[2]);
}

TEST(CheckpointStore, ADamagedBestOneIsFoundBeforeARunGoesOn) {
  const fixtures::TempFolder folder;
  {
    StoredRun run(folder.path());
    run.step();
    run.store.offer(2);
    run.step();
    run.store.save();
  }
  damage(folder / "checkpoint-best");
  StoredRun run(folder.path());
  const std::string error = fixtures::error_text(folder, [&] { run.store.load(kSteps); });
  EXPECT_TRUE(error.starts_with("<>/checkpoint-best/state.safetensors: has the fingerprint "))
      << error;
}

/// The last one tells which was the best, so that none takes its place unseen.
TEST(CheckpointStore, ABestOneThatIsGoneOrAnotherIsRefused) {
  const fixtures::TempFolder folder;
  {
    StoredRun run(folder.path());
    for (const double score : {1.5, 2.0, 1.75}) {
      run.step();
      run.store.offer(score);
      run.store.save();
    }
  }
  const auto error = [&] {
    StoredRun run(folder.path());
    run.store.load(kSteps);
    return fixtures::error_text(folder, [&] { run.store.check_best(); });
  };
  EXPECT_EQ(error(), "(no error)");
  const std::string expected =
      ", expected that of 2.000 tokens per step, which <>/checkpoint tells of; put a copy of it in "
      "its place, or train anew with --fresh";
  fs::rename(folder / "checkpoint-best", folder / "moved");
  EXPECT_EQ(error(), "<>/checkpoint-best: found no checkpoint" + expected);
  fs::copy(folder / "checkpoint", folder / "checkpoint-best");
  EXPECT_EQ(error(), "<>/checkpoint-best: found a checkpoint of 0.000 tokens per step" + expected);
  {  // a run that goes on without asking for the best one remembers it
    StoredRun run(folder.path());
    run.store.load(kSteps);
    run.step();
    run.store.save();
  }
  EXPECT_NE(error(), "(no error)");
  fs::remove_all(folder / "checkpoint-best");
  fs::rename(folder / "moved", folder / "checkpoint-best");
  EXPECT_EQ(error(), "(no error)");
}

TEST(CheckpointStore, WhatAKilledRunLeftOfOneIsRemovedByTheNext) {
  const fixtures::TempFolder folder;
  for (const char* name : {"checkpoint.partial", "checkpoint-00000003.partial",
                           "checkpoint-best.partial", "mine.partial"})
    write_file((make_folder(folder / name), folder / name / "state.safetensors"), "half");
  StoredRun run(folder.path());
  EXPECT_EQ(run.store.load(kSteps), 0);
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"mine.partial"});
}

// Where the file system cannot swap two names: killed between the two renames, a run would begin
// anew.
TEST(CheckpointStore, WhatAKillLeftOfAReplacementIsGoneOnFrom) {
  const fixtures::TempFolder folder, before;
  {
    StoredRun run(folder.path());
    run.step();
    run.store.offer(2);
    run.store.save();
    for (const char* name : {"checkpoint", "checkpoint-best"})
      fs::copy(folder / name, before / name);
    run.step();
    run.store.offer(3);
    run.store.save();
  }
  for (const std::string name : {"checkpoint", "checkpoint-best"}) {
    fs::rename(folder / name, folder / (name + ".partial"));
    fs::copy(before / name, folder / (name + ".partial-old"));
  }
  StoredRun run(folder.path());
  EXPECT_EQ(run.store.load(kSteps), 2);
  EXPECT_EQ(run.store.load_best(), 2);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"checkpoint", "checkpoint-best"}));
}

// Altered and sealed again.
TEST(CheckpointStore, OneOfMoreStepsThanTheRunHasIsRefused) {
  const fixtures::TempFolder folder;
  {
    StoredRun run(folder.path());
    run.step();
    run.step();
    run.store.save();
  }
  StoredRun run(folder.path());
  EXPECT_EQ(fixtures::error_text(folder, [&] { run.store.load(1); }),
            "<>/checkpoint: the checkpoint was made after 2 steps, this run has 1, expected at "
            "most as many; put a good copy in its place, or train anew with --fresh");
}

}  // namespace
}  // namespace medusa
