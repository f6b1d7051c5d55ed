#include "train/record/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "base/fingerprint.h"
#include "base/replace_folder.h"
#include "tests/base/error_text.h"

namespace medusa {
namespace {

/// Files of this process may not grow beyond so many bytes: as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, [](int) {})) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(Checkpoint, AFullDiskLeavesTheEarlierOneWhole) {
  const fixtures::TempFolder folder;
  const std::filesystem::path place = folder / "checkpoint";
  at::Tensor weight = at::arange(20000, at::kFloat);
  AdamW optimizer({{"weight", weight}});
  const RunIdentity identity{"seed=1"};
  const auto step = [&] {
    weight.mutable_grad() = at::ones_like(weight);
    optimizer.step(0.1, 0, 1e9);
  };
  step();
  save_checkpoint(place, identity, {{"weight", weight}}, optimizer);
  const at::Tensor good = weight.clone();
  const std::string bytes = read_file(place / "state.safetensors");

  step();
  std::string error;
  {
    const FullDisk full(100000);  // less than one of the three tensors of 80 kB with its header
    error = fixtures::error_text(folder, [&] {
      save_checkpoint(place, identity, {{"weight", weight}}, optimizer);
    });
  }
  EXPECT_TRUE(error.starts_with("<>/checkpoint.partial/state.safetensors")) << error;
  EXPECT_TRUE(folder_is_done(place));
  EXPECT_FALSE(std::filesystem::exists(folder / "checkpoint.partial"));
  EXPECT_EQ(read_file(place / "state.safetensors"), bytes);
  EXPECT_EQ(load_checkpoint(place, identity, {{"weight", weight}}, optimizer), 1);
  EXPECT_TRUE(at::equal(weight, good));
}

TEST(Checkpoint, ParametersAndMomentsComeBackBitForBit) {
  const fixtures::TempFolder folder;
  at::Tensor a = at::rand({7}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
  at::Tensor b = at::rand({3}, at::make_generator<at::CPUGeneratorImpl>(2), at::kFloat);
  const NamedTensors parameters{{"a", a}, {"b", b}};
  AdamW optimizer(std::vector<ParameterGroup>{{{{"a", a}}, 1}, {{{"b", b}}, 4}});
  const auto step = [&](AdamW& each) {
    a.mutable_grad() = a * 0.3;
    b.mutable_grad() = b * -0.2;
    each.step(0.1, 0.01, 1);
  };
  step(optimizer);
  save_checkpoint(folder / "c", {"x=1"}, parameters, optimizer);
  step(optimizer);
  const at::Tensor expected_a = a.clone(), expected_b = b.clone();

  AdamW fresh(std::vector<ParameterGroup>{{{{"a", a}}, 1}, {{{"b", b}}, 4}});
  EXPECT_EQ(load_checkpoint(folder / "c", {"x=1"}, parameters, fresh), 1);
  step(fresh);
  EXPECT_TRUE(at::equal(a, expected_a));
  EXPECT_TRUE(at::equal(b, expected_b));
}

TEST(Checkpoint, NamesTheFirstSettingThatDiffers) {
  const fixtures::TempFolder folder;
  at::Tensor a = at::zeros({1});
  AdamW optimizer({{"a", a}});
  save_checkpoint(folder / "c", {"seed=1", "train.joint.part=lora"}, {{"a", a}}, optimizer);
  EXPECT_EQ(fixtures::error_text(folder,
                                 [&] {
                                   load_checkpoint(folder / "c",
                                                   {"seed=1", "train.joint.part=all_layers"},
                                                   {{"a", a}}, optimizer);
                                 }),
            "<>/c: the checkpoint was made with train.joint.part lora, this run has "
            "train.joint.part all_layers, expected the same; set it back to continue, or train "
            "anew with --fresh");
  EXPECT_EQ(load_checkpoint(folder / "nothing", {"seed=1"}, {{"a", a}}, optimizer), 0);
}

/// A checkpoint of one step, in folder/c.
struct SavedCheckpoint {
  SavedCheckpoint() {
    weight.mutable_grad() = at::ones_like(weight);
    optimizer.step(0.1, 0, 1e9);
    save_checkpoint(place(), identity, {{"weight", weight}}, optimizer, {1.5, {}});
  }
  std::filesystem::path place() const { return folder / "c"; }
  std::filesystem::path state() const { return place() / "state.safetensors"; }
  std::filesystem::path description() const { return place() / "checkpoint.yaml"; }
  std::string error_of_loading() {
    return fixtures::error_text(folder, [&] {
      load_checkpoint(place(), identity, {{"weight", weight}}, optimizer);
    });
  }

  fixtures::TempFolder folder;
  RunIdentity identity{"seed=1", "the dataset=sha256:aa"};
  at::Tensor weight = at::arange(50, at::kFloat);
  AdamW optimizer{{{"weight", weight}}};
};

/// As a disk does it: in place, whatever names the file has.
void flip(const std::filesystem::path& file, size_t byte, int bit) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(byte));
  const auto flipped = static_cast<char>(stream.get() ^ (1 << bit));
  stream.seekp(static_cast<std::streamoff>(byte));
  stream.put(flipped);
}

TEST(Checkpoint, AFlippedBitAnywhereIsNoticedBeforeAnythingIsTaken) {
  SavedCheckpoint saved;
  const at::Tensor before = saved.weight.clone();
  for (const auto& file : {saved.state(), saved.description()}) {
    const std::string whole = read_file(file);
    for (size_t byte = 0; byte < whole.size(); ++byte)
      for (const int bit : {0, 3, 7}) {
        flip(file, byte, bit);
        saved.weight.fill_(7);
        const std::string error = saved.error_of_loading();
        ASSERT_TRUE(error.starts_with("<>/c/")) << file << " byte " << byte << ": " << error;
        ASSERT_NE(error.find("expected"), std::string::npos) << error;
        ASSERT_NE(error.find("train anew with --fresh"), std::string::npos) << error;
        ASSERT_TRUE(saved.weight.eq(7).all().item<bool>()) << file << " byte " << byte;
        flip(file, byte, bit);
      }
    ASSERT_EQ(read_file(file), whole) << "what is refused stays as it is";
  }
  EXPECT_EQ(saved.error_of_loading(), "(no error)");
  EXPECT_TRUE(at::equal(saved.weight, before));
}

TEST(Checkpoint, SaysWhichFileWasAltered) {
  SavedCheckpoint saved;
  flip(saved.state(), std::filesystem::file_size(saved.state()) - 3, 4);
  const std::string of_state = saved.error_of_loading();
  EXPECT_TRUE(of_state.starts_with("<>/c/state.safetensors: has the fingerprint sha256:"))
      << of_state;
  EXPECT_TRUE(of_state.ends_with(
      ", expected that of checkpoint.yaml, sha256:" +
      of_state.substr(of_state.find(".yaml, sha256:") + 14, 12) +
      "…; the checkpoint is damaged: put a copy of <>/c in its place, or train anew with --fresh"))
      << of_state;
  EXPECT_EQ(fixtures::error_text(
                saved.folder,
                [&] {
                  load_parameters(saved.place(), saved.identity, {{"weight", saved.weight}});
                }),
            of_state);

  flip(saved.description(), read_file(saved.description()).find("step:") + 6, 1);
  const std::string of_description =
      "<>/c/checkpoint.yaml: has other bytes than its checksum says, expected those that were "
      "written; the checkpoint is damaged: put a copy of <>/c in its place, or train anew with "
      "--fresh";
  EXPECT_EQ(saved.error_of_loading(), of_description);
  EXPECT_EQ(fixtures::error_text(saved.folder, [&] { checkpoint_score(saved.place()); }),
            of_description);
}

TEST(Checkpoint, WhatIsNoneOfOursIsAnErrorOfTheUser) {
  SavedCheckpoint saved;
  const std::string whole = read_file(saved.description());
  for (const std::string& text :
       {std::string("5\n"), std::string(), std::string("[1, 2]\n"), std::string("\xff\x00: {"),
        std::string("format: medusa-train-checkpoint\nstep: 1\n"),
        whole.substr(0, whole.size() / 2), whole + whole}) {
    write_file(saved.description(), text);
    EXPECT_NE(saved.error_of_loading().find("has other bytes than its checksum says"),
              std::string::npos)
        << text;
  }
}

TEST(Checkpoint, AnotherVersionIsRefusedAndSaysWhatToDo) {
  SavedCheckpoint saved;
  // As version 1 was: without checksums.
  write_file(saved.description(),
             "format: medusa-train-checkpoint\nversion: 1\nstep: 1\ntokens_per_step: 0\nrun: "
             "[seed=1]\n");
  EXPECT_EQ(
      saved.error_of_loading(),
      "<>/c/checkpoint.yaml: version 1 of the format, expected 2 to 4; finish the run with the "
      "program that began it, or train anew with --fresh");
}

/// Without the best one's score, which version 4 added, and what was not reported yet, as
/// version 3.
TEST(Checkpoint, TheVersionsBeforeAreRead) {
  SavedCheckpoint saved;
  const at::Tensor before = saved.weight.clone();
  std::string text = read_file(saved.description());
  text = text.substr(0, text.find("checksum: "));
  const auto without = [&](const std::string& line, const std::string& instead) {
    const size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, line.size(), instead);
  };
  const auto expect_read = [&] {
    write_file(saved.description(), text + "checksum: " + fingerprint_text(text) + "\n");
    saved.weight.fill_(7);
    EXPECT_EQ(saved.error_of_loading(), "(no error)");
    EXPECT_TRUE(at::equal(saved.weight, before));
    EXPECT_EQ(read_checkpoint(saved.place()).step, 1);
  };
  without("version: 4\n", "version: 3\n");
  without("best_tokens_per_step: 0\n", "");
  expect_read();
  without("version: 3\n", "version: 2\n");
  without("unreported: []\n", "");
  expect_read();
}

TEST(Checkpoint, KeepsWhatNoReportHasToldOfAndTheBestScore) {
  SavedCheckpoint saved;
  const std::vector<double> unreported{3, 0.1 + 0.2, 0, 1e-300};
  save_checkpoint(saved.place(), saved.identity, {{"weight", saved.weight}}, saved.optimizer,
                  {0, unreported, 1.1 + 0.2});
  CheckpointNotes found;
  load_checkpoint(saved.place(), saved.identity, {{"weight", saved.weight}}, saved.optimizer,
                  &found);
  EXPECT_EQ(found.unreported, unreported);
  EXPECT_EQ(found.best_tokens_per_step, 1.1 + 0.2);
}

TEST(Checkpoint, OneThatIsNotWholeIsNotTakenForNone) {
  SavedCheckpoint saved;
  std::filesystem::remove(saved.place() / "DONE");
  const std::string error =
      "<>/c: has no file DONE, expected a checkpoint that was finished; the checkpoint is damaged: "
      "put a copy of <>/c in its place, or train anew with --fresh";
  EXPECT_EQ(saved.error_of_loading(), error);
  EXPECT_EQ(fixtures::error_text(saved.folder, [&] { checkpoint_score(saved.place()); }), error);
  write_file(saved.place() / "DONE", "");
  std::filesystem::remove(saved.state());
  EXPECT_TRUE(saved.error_of_loading().starts_with("<>/c/state.safetensors: "));
}

}  // namespace
}  // namespace medusa
