#include <fmt/format.h>

#include <optional>
#include <utility>

#include "backbone/llama.h"
#include "infer/backbone_target.h"
#include "infer/cuda/device_decoder.h"
#include "infer/factory.h"
#include "tests/cuda/device_models.h"
#include "tests/cuda/every_device.h"
#include "tests/heads/random_heads.h"
#include "tools/profile/launch_counter.h"

namespace medusa {
namespace {

class MakeDecoderTest : public testing::Test {
 protected:
  static InferConfig settings(DrafterKind drafter, RuleKind rule = RuleKind::Auto,
                              double temperature = 0) {
    InferConfig out;
    out.drafter = drafter;
    out.rule = rule;
    out.sampling.temperature = temperature;
    return out;
  }

  bool offered(const InferConfig& settings, HeadInput input = HeadInput::Root) {
    const MedusaHeads heads = random_heads(heads_config(input, HeadOutput::Shared), weights_);
    const TreeShape shape = make_choice_tree({{0}, {1}, {0, 0}}, 2, "test").shape();
    DraftParts parts;
    parts.heads = &heads;
    parts.shape = &shape;
    const auto found = make_device_decoder(settings, parts, target_, kernels_);
    if (found) {
      EXPECT_EQ(found->num_nodes(), settings.drafter == DrafterKind::None ? 1 : 4);
    }
    return found != nullptr;
  }

  Weights weights_ = tiny_weights(1, device_config(), at::kBFloat16);
  Llama llama_{weights_,
               std::make_unique<CudaLlama>(
                   weights_, DeviceKernels{emulated_layer_kernels(), emulated_gemm_kernels()})};
  BackboneTarget target_{llama_, 1, 64};
  DeviceLoopKernels kernels_{emulated_head_kernels(), emulated_step_kernels(), emulated_runtime()};
};

TEST_F(MakeDecoderTest, IsForPlainDecodingAndForFixedTrees) {
  EXPECT_TRUE(offered(settings(DrafterKind::None)));
  EXPECT_TRUE(offered(settings(DrafterKind::Medusa)));
  EXPECT_TRUE(offered(settings(DrafterKind::Medusa), HeadInput::Sequential));
  EXPECT_FALSE(offered(settings(DrafterKind::Medusa), HeadInput::Prefix));
  EXPECT_FALSE(offered(settings(DrafterKind::PromptLookup)));
  InferConfig adaptive = settings(DrafterKind::Medusa), dynamic = adaptive;
  adaptive.medusa.adaptive = true;
  dynamic.medusa.dynamic = true;
  EXPECT_FALSE(offered(adaptive));
  EXPECT_FALSE(offered(dynamic));
}

TEST_F(MakeDecoderTest, IsForTheRulesThatItsKernelsKnow) {
  const DrafterKind medusa = DrafterKind::Medusa;
  EXPECT_TRUE(offered(settings(medusa, RuleKind::Auto, 0.8)));
  EXPECT_TRUE(offered(settings(medusa, RuleKind::Typical, 0.8)));
  EXPECT_TRUE(offered(settings(medusa, RuleKind::Typical, 0)));
  EXPECT_FALSE(offered(settings(medusa, RuleKind::Rejection, 0.8)));
  InferConfig filtered = settings(medusa, RuleKind::Auto, 0.8);
  filtered.sampling.top_p = 0.9;
  EXPECT_TRUE(offered(filtered));
  filtered.sampling.top_k = 5;
  filtered.sampling.min_p = 0.1;
  EXPECT_TRUE(offered(filtered));
  filtered.rule = RuleKind::Typical;
  EXPECT_FALSE(offered(filtered)) << "its kernel weighs all tokens";
}

TEST_F(MakeDecoderTest, TellsTheGraphsThatItCaptured) {
  const auto found = make_device_decoder(settings(DrafterKind::None), {}, target_, kernels_);
  EXPECT_EQ(found->report(), "");
  std::optional<DecodeRequest> only(DecodeRequest{});
  only->prompt = {1, 2, 3};
  only->limits.max_new_tokens = 5;
  only->emit = [](const EmittedToken&) { return true; };
  const LaunchCounter launches;
  decode(
      *found, [&] { return std::exchange(only, std::nullopt); },
      [](size_t, const DecodeStats&) { return true; });
  const CapturedGraph graph = found->graphs().at(0);
  EXPECT_GE(launches.count().kernels, 5 * found->num_kernels(graph))
      << "emulated: replays count, too";
  EXPECT_EQ(found->report(),
            fmt::format("graph: 1 sequence of 1 node within {} tokens, {} kernels\n",
                        graph.max_context, found->num_kernels(graph)));
}

TEST_F(MakeDecoderTest, IsNotForWhoWantsTheHostsLoopOrHasNoGpu) {
  InferConfig host = settings(DrafterKind::None);
  host.graphs = false;
  EXPECT_FALSE(offered(host));
  EXPECT_EQ(make_device_decoder(settings(DrafterKind::None), {}, target_, {}), nullptr);
  Llama cpu(weights_);
  BackboneTarget target(cpu, 1, 64);
  EXPECT_EQ(make_device_decoder(settings(DrafterKind::None), {}, target, kernels_), nullptr);
}

}  // namespace
}  // namespace medusa
