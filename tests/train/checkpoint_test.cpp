#include "train/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/file.h"
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
            "train.joint.part all_layers; set it back to continue, or remove the folder to train "
            "anew");
  EXPECT_EQ(load_checkpoint(folder / "nothing", {"seed=1"}, {{"a", a}}, optimizer), 0);
}

}  // namespace
}  // namespace medusa
