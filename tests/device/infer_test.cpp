// Decoding with a model on a device: every drafter and every rule writes what it writes on the CPU.
#include <gtest/gtest.h>

#include <memory>

#include "infer/backbone_target.h"
#include "infer/decoder.h"
#include "infer/draft_models/second_model.h"
#include "infer/draft_models/skipping_model.h"
#include "infer/factory.h"
#include "tests/backbone/tiny_model.h"
#include "tests/device/test_devices.h"
#include "tests/infer/drafter_cases.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

/// A model that decodes, and all that a drafter may need of it.
class Decoding {
 public:
  explicit Decoding(at::Device device, HeadInput heads, int64_t correction_rank = 0)
      : llama_(on_device(tiny_weights(1), device), Kernels::Reference),
        heads_(llama_.weights(), heads, correction_rank),
        draft_llama_(on_device(tiny_weights(2), device), Kernels::Reference),
        draft_(draft_llama_, 2, kRows, llama_.config().vocab_size),
        eagle3_(fixtures::arbitrary_eagle3(llama_.weights(), {0, 1, 2}), llama_.weights()) {}

  /// Two texts, which are written beside each other.
  std::vector<std::vector<TokenId>> texts(const InferConfig& config) {
    BackboneTarget target(llama_, 2, kRows);
    SkippingModel skipping(target, {1});
    DraftParts parts = heads_.parts();
    parts.draft = &draft_;
    parts.skipping = &skipping;
    parts.eagle3 = &eagle3_;
    const std::unique_ptr<AcceptanceRule> rule = make_rule(config);
    std::vector<std::vector<TokenId>> out(2);
    size_t taken = 0;
    const auto next = [&]() -> std::optional<DecodeRequest> {
      if (taken == out.size()) return std::nullopt;
      std::vector<TokenId>& text = out[taken++];
      const std::vector<TokenId> twice = random_tokens(taken, 9);
      std::vector<TokenId> prompt = twice;
      prompt.insert(prompt.end(), twice.begin(), twice.end());
      DecodeRequest request{prompt, {12, 10, {}}, Random(taken), {}};
      request.emit = [&text](const EmittedToken& token) {
        text.push_back(token.id);
        return true;
      };
      return request;
    };
    decode(target, *rule, make_drafter_factory(config, parts), next,
           [](size_t, const DecodeStats&) { return true; });
    return out;
  }

 private:
  static constexpr int64_t kRows = 64;

  Llama llama_;
  fixtures::HeadParts heads_;
  Llama draft_llama_;
  SecondModel draft_;
  Eagle3Model eagle3_;
};

class DecodingOnDevice : public fixtures::OnDevice {
 protected:
  static void expect_same_texts(const InferConfig& config, HeadInput heads) {
    EXPECT_EQ(Decoding(device(), heads).texts(config), Decoding(at::kCPU, heads).texts(config));
  }
};
MEDUSA_ON_EVERY_DEVICE(DecodingOnDevice);

TEST_P(DecodingOnDevice, EveryDrafterWritesTheGreedyTextOfTheCpu) {
  const auto plain =
      Decoding(at::kCPU, HeadInput::Root).texts(fixtures::case_of(DrafterKind::None).config);
  EXPECT_EQ(plain[1].size(), 12U);
  for (const fixtures::DrafterCase& drafter : fixtures::drafter_cases()) {
    SCOPED_TRACE(drafter.name);
    EXPECT_EQ(Decoding(device(), drafter.heads, drafter.correction_rank).texts(drafter.config),
              plain);
  }
}

TEST_P(DecodingOnDevice, EveryRuleWritesTheTextOfTheCpu) {
  for (const auto& [name, rule] : EnumNames<RuleKind>::values) {
    SCOPED_TRACE(name);
    InferConfig config;
    config.rule = rule;
    if (rule == RuleKind::Blockwise) config.drafter = DrafterKind::Blockwise;
    if (rule != RuleKind::Auto && rule != RuleKind::Greedy && rule != RuleKind::Blockwise)
      config.sampling.temperature = 0.8F;
    if (rule == RuleKind::Nucleus) config.sampling.top_p = 0.9F;
    expect_same_texts(config, HeadInput::Sequential);
  }
}

TEST_P(DecodingOnDevice, TreesThatAreDrawnAreDrawnAsOnTheCpu) {
  for (const DrafterKind drafter :
       {DrafterKind::DraftModel, DrafterKind::Specinfer, DrafterKind::LayerSkip}) {
    SCOPED_TRACE(enum_name(drafter));
    InferConfig config;
    config.drafter = drafter;
    config.rule = RuleKind::Rejection;
    config.sampling.temperature = 0.8F;
    expect_same_texts(config, HeadInput::Root);
  }
}

}  // namespace
}  // namespace medusa
