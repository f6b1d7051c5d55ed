#include "heads/cuda/device_heads.h"

#include "heads/heads_runner.h"
#include "infer/drafters/medusa_drafter.h"
#include "tests/cuda/device_models.h"
#include "tests/cuda/every_device.h"
#include "tests/heads/random_heads.h"

namespace medusa {
namespace {

constexpr int64_t kTopK = 4;

class DeviceHeadsTest : public OnEveryDevice {
 protected:
  DeviceHeadsTest()
      : shape_(make_choice_tree(
                   {{0}, {1}, {3}, {0, 0}, {0, 2}, {1, 0}, {3, 1}, {0, 2, 0}, {3, 1, 1}}, 4, "test")
                   .shape()) {}

  /// [B, N] as the host's drafter fills them.
  std::vector<TokenId> expected(const MedusaHeads& heads, const Weights& backbone,
                                const at::Tensor& states, const std::vector<TokenId>& roots) const {
    HeadsRunner runner(heads, backbone, kTopK);
    MedusaDrafter drafter(runner, shape_);
    std::vector<TokenId> tokens;
    for (size_t b = 0; b < roots.size(); ++b) {
      const std::vector<TokenId> text{5, roots[b]};
      const CandidateTree tree =
          drafter.propose({text, states[static_cast<int64_t>(b)], 10, 64}, Random(1));
      tokens.insert(tokens.end(), tree.tokens.begin(), tree.tokens.end());
    }
    return tokens;
  }

  /// [B, N] of the device.
  std::vector<TokenId> fill(const MedusaHeads& heads, const Weights& backbone,
                            const at::Tensor& states, const std::vector<TokenId>& roots) const {
    DeviceHeads on_device(heads, backbone, shape_, kTopK, *loop_kernels().heads, *kernels().gemms,
                          pick_with(*loop_kernels().steps));
    const auto b = static_cast<int64_t>(roots.size());
    on_device.reserve(b);
    const at::Tensor tokens =
        at::zeros({b, static_cast<int64_t>(shape_.depths.size())}, at::kInt).to(device());
    const at::Tensor root = at::tensor(roots, at::kInt).to(device());
    on_device.fill(static_cast<const Bf16*>(states.data_ptr()),
                   static_cast<const int32_t*>(root.data_ptr()), b,
                   static_cast<int32_t*>(tokens.data_ptr()), nullptr);
    const at::Tensor host = tokens.cpu();
    const auto* from = host.const_data_ptr<int32_t>();
    return {from, from + host.numel()};
  }

  TreeShape shape_;
};

/// Drafts of nearly equal logits may change places, since sums differ in order (and LibTorch's are
/// rounded on a GPU); of sequential heads all that comes after them differs then.
int count_different(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  int different = 0;
  for (size_t i = 0; i < a.size(); ++i) different += a[i] != b[i] ? 1 : 0;
  return different;
}

TEST_P(DeviceHeadsTest, FillsTheTreesThatTheDrafterFills) {
  const Weights host = tiny_weights(1, device_config(), at::kBFloat16);
  const Weights weights = to_device(host, device());
  const at::Tensor states = random_hidden(3, at::kBFloat16).to(device());
  const std::vector<TokenId> roots{7, 100, 31};
  int different = 0, nodes = 0;
  for (const HeadsConfig& config : all_configs()) {
    if (!DeviceHeads::supports(config, weights)) {
      EXPECT_TRUE(
          has_prefix(config.input) ||
          (config.correction_rank > 0 && (config.layers_per_head > 1 || is_own(config.output))))
          << describe(config);
      continue;
    }
    const MedusaHeads heads = random_heads(config, weights);
    const std::vector<TokenId> filled = fill(heads, weights, states, roots);
    const std::vector<TokenId> meant = expected(heads, weights, states, roots);
    ASSERT_EQ(filled.size(), meant.size());
    EXPECT_LE(count_different(filled, meant), emulated() ? 8 : 12) << describe(config);
    different += count_different(filled, meant);
    nodes += static_cast<int>(filled.size());
  }
  EXPECT_LT(different * (emulated() ? 100 : 20), nodes) << "of " << nodes;
}

TEST_P(DeviceHeadsTest, CorrectsByTheTokenOfEachPath) {
  const Weights weights = device_weights(1, device_config(), device());
  const at::Tensor states = random_hidden(3, at::kBFloat16).to(device());
  const std::vector<TokenId> roots{7, 100, 31};
  for (const HeadInput input : {HeadInput::Hidden, HeadInput::Root}) {
    HeadsConfig config = heads_config(input, HeadOutput::TruncatedShared);
    config.correction_rank = 32;
    MedusaHeads heads = random_heads(config, weights);
    for (at::Tensor& factor : heads.correction->factors) factor.mul_(30);  // it decides
    const std::vector<TokenId> filled = fill(heads, weights, states, roots);
    EXPECT_LE(count_different(filled, expected(heads, weights, states, roots)), emulated() ? 2 : 6);
    for (at::Tensor& factor : heads.correction->factors) factor.zero_();
    EXPECT_GE(count_different(filled, expected(heads, weights, states, roots)), 12) << "of 18";
  }
}

TEST_P(DeviceHeadsTest, ASequencesTreeDoesNotDependOnItsNeighbors) {
  const Weights weights = device_weights(1, device_config(), device());
  const at::Tensor states = random_hidden(5, at::kBFloat16).to(device());
  const HeadsConfig config = heads_config(HeadInput::Sequential, HeadOutput::Shared, 2);
  const MedusaHeads heads = random_heads(config, tiny_weights(1, device_config(), at::kBFloat16));
  const std::vector<TokenId> roots{7, 100, 31, 2, 90};
  const std::vector<TokenId> together = fill(heads, weights, states, roots);
  const size_t n = shape_.depths.size();
  for (size_t b = 0; b < roots.size(); ++b) {
    const at::Tensor state = states.narrow(0, static_cast<int64_t>(b), 1).contiguous();
    const std::vector<TokenId> alone = fill(heads, weights, state, {roots[b]});
    EXPECT_TRUE(
        std::equal(alone.begin(), alone.end(), together.begin() + static_cast<int64_t>(b * n)))
        << b;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceHeadsTest, every_device(), device_name);

}  // namespace
}  // namespace medusa
