// Heads on a device draft what they draft on the CPU.
#include <gtest/gtest.h>

#include "heads/heads_checkpoint.h"
#include "heads/heads_runner.h"
#include "heads/path_drafts.h"
#include "heads/prefix_model.h"
#include "tests/base/temp_folder.h"
#include "tests/device/test_devices.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

class HeadsOnDevice : public fixtures::OnDevice {
 protected:
  static void expect_same(const HeadDrafts& found, const HeadDrafts& expected) {
    EXPECT_EQ(found.tokens, expected.tokens);
    ASSERT_EQ(found.log_probs.size(), expected.log_probs.size());
    for (size_t i = 0; i < expected.log_probs.size(); ++i)
      ASSERT_NEAR(found.log_probs[i], expected.log_probs[i], 1e-4);
  }
};
MEDUSA_ON_EVERY_DEVICE(HeadsOnDevice);

TEST_P(HeadsOnDevice, EveryKindBeginsAsOnTheCpu) {
  const Weights here = tiny_weights(1), there = on_device(here, device());
  for (const HeadsConfig& config : all_configs()) {
    SCOPED_TRACE(describe(config));
    const auto expected = named_parameters(untrained_heads(config, here));
    const auto found = named_parameters(untrained_heads(config, there));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i].second.device(), device()) << found[i].first;
      expect_close(found[i].second, expected[i].second);
    }
  }
}

TEST_P(HeadsOnDevice, EveryKindDraftsAsOnTheCpu) {
  const Weights here = tiny_weights(1), there = on_device(here, device());
  const auto text = some_text(9);
  const at::Tensor hidden = random_hidden(6, at::kFloat);
  for (const HeadsConfig& config : all_configs()) {
    SCOPED_TRACE(describe(config));
    HeadsRunner expected(random_heads(config, here), here, 7);
    HeadsRunner found(random_heads(config, there), there, 7);
    expect_same(found.draft(hidden.to(device()), text), expected.draft(hidden, text));
    expect_same(found.draft_along(hidden.to(device()), text), expected.draft_along(hidden, text));
  }
}

/// As a dataset has them.
TEST_P(HeadsOnDevice, StatesMayComeFromTheCpu) {
  const Weights backbone = on_device(tiny_weights(1), device());
  const auto text = some_text(9);
  const at::Tensor hidden = random_hidden(6, at::kBFloat16);
  for (const HeadInput input : {HeadInput::Hidden, HeadInput::Sequential, HeadInput::Prefix}) {
    HeadsRunner runner(random_heads(heads_config(input, HeadOutput::Shared), backbone), backbone,
                       7);
    const HeadDrafts expected = runner.draft_along(hidden.to(device(), at::kFloat), text);
    expect_same(runner.draft_along(hidden, text), expected);
  }
}

TEST_P(HeadsOnDevice, SequentialHeadsGoDownTheirPaths) {
  const Weights here = tiny_weights(1), there = on_device(here, device());
  const HeadsConfig config = heads_config(HeadInput::Sequential, HeadOutput::TruncatedLowRank);
  HeadsRunner on_cpu(random_heads(config, here), here, 7);
  HeadsRunner on_it(random_heads(config, there), there, 7);
  const at::Tensor hidden = random_hidden(1, at::kFloat);
  PathDrafts expected(on_cpu, hidden, 5, 3), found(on_it, hidden.to(device()), 5, 3);
  const std::vector<TokenId> paths{7, 12, 3, 9};
  for (const int64_t depth : {0, 1, 2}) {
    const auto read = std::span(paths).first(depth == 0 ? 0 : 4);
    const NextDrafts a = expected.after(read, depth), b = found.after(read, depth);
    for (int64_t path = 0; path < (depth == 0 ? 1 : 4 / depth); ++path)
      for (int64_t rank = 0; rank < 7; ++rank) {
        EXPECT_EQ(b.token(path, rank), a.token(path, rank));
        EXPECT_NEAR(b.log_prob(path, rank), a.log_prob(path, rank), 1e-4);
      }
  }
}

TEST_P(HeadsOnDevice, AFolderOfHeadsIsWrittenFromItAndReadToIt) {
  const Weights here = tiny_weights(1), there = on_device(here, device());
  const fixtures::TempFolder folder;
  for (const HeadInput input : {HeadInput::Root, HeadInput::PrefixSequential}) {
    const HeadsConfig config = heads_config(input, HeadOutput::TruncatedLowRank);
    const MedusaHeads heads = random_heads(config, there);
    HeadsManifest manifest;
    manifest.backbone = there.fingerprint;
    save_heads(folder / "heads", heads, at::kFloat, manifest);
    const auto expected = named_parameters(random_heads(config, here));
    for (const Weights& backbone : {here, there}) {
      const auto loaded = named_parameters(load_heads(folder / "heads", backbone).heads);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(loaded[i].second.device(), backbone.lm_head.device());
        EXPECT_TRUE(at::equal(loaded[i].second.cpu(), expected[i].second)) << loaded[i].first;
      }
    }
  }
}

}  // namespace
}  // namespace medusa
