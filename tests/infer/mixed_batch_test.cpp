// Requests that differ in everything, decoded at the same time on every CPU engine of this machine:
// each text is the one of the request alone.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "backbone/cpu/cpu_kernels.h"
#include "infer/backbone_target.h"
#include "infer/drafter.h"
#include "infer/factory.h"
#include "infer/host_decoder.h"
#include "infer/rules/greedy_rule.h"
#include "tests/backbone/quantized_weights.h"
#include "tests/backbone/tiny_model.h"
#include "tests/infer/toy_heads.h"

namespace medusa {
namespace {

struct Asked {
  DrafterKind drafter;
  RuleKind rule;
  double temperature;
  int64_t prompt;  // tokens
  DecodeLimits limits;
};

/// Drafters, rules, temperatures, lengths and tree sizes, no two alike. A rule that is not lossless
/// has a drafter whose tree does not depend on who shares the pass.
std::vector<Asked> all_asked() {
  return {{DrafterKind::None, RuleKind::Greedy, 0, 3, {30, 64, {}}},
          {DrafterKind::Medusa, RuleKind::Greedy, 0, 150, {24, 8, {}}},
          {DrafterKind::PromptLookup, RuleKind::Match, 0.7, 40, {40, 16, {}}},
          {DrafterKind::Medusa, RuleKind::Typical, 0.9, 17, {28, 64, {7}}},
          {DrafterKind::Merge, RuleKind::Match, 1.1, 1, {33, 20, {}}},
          {DrafterKind::Retrieval, RuleKind::Match, 0.5, 64, {9, 5, {}}},
          {DrafterKind::Medusa, RuleKind::Rejection, 0.8, 33, {26, 6, {}}},
          {DrafterKind::Lookahead, RuleKind::Greedy, 0, 12, {20, 32, {3, 5}}},
          {DrafterKind::None, RuleKind::Match, 1.5, 200, {17, 1, {}}}};
}

struct KernelSet {
  std::string name;
  CpuIsa isa;
  bool quantized;  // its weights

  friend void PrintTo(const KernelSet& kernels, std::ostream* out) { *out << kernels.name; }
};

std::vector<KernelSet> kernels_here() {
  constexpr std::pair<const char*, CpuIsa> kIsas[] = {{"amx", CpuIsa::Amx},
                                                      {"avx512_bf16", CpuIsa::Avx512Bf16},
                                                      {"avx512", CpuIsa::Avx512},
                                                      {"avx2", CpuIsa::Avx2},
                                                      {"plain", CpuIsa::Portable}};
  std::vector<KernelSet> out;
  for (const auto& [name, isa] : kIsas)
    for (const bool quantized : {false, true})
      if (kernels_for(isa, quantized) != nullptr)
        out.push_back({name + std::string(quantized ? "_quantized" : ""), isa, quantized});
  return out;
}

class MixedBatch : public testing::TestWithParam<KernelSet> {
 protected:
  static constexpr int64_t kRows = 320;

  /// @param texts  one for each of the chosen.
  static std::vector<DecodeRequest> requests(const std::vector<size_t>& chosen,
                                             const DraftParts& parts,
                                             std::vector<std::vector<TokenId>>& texts) {
    texts.assign(chosen.size(), {});
    std::vector<DecodeRequest> out;
    for (const size_t i : chosen) {
      const Asked asked = all_asked().at(i);
      InferConfig config;
      config.drafter = asked.drafter;
      config.rule = asked.rule;
      config.sampling.temperature = asked.temperature;
      DecodeRequest request{random_tokens(100 + i, asked.prompt), asked.limits, Random(50 + i), {}};
      request.rule = make_rule(config);
      request.make_drafter = make_drafter_factory(config, parts);
      request.emit = [&text = texts[out.size()]](const EmittedToken& token) {
        text.push_back(token.id);
        return true;
      };
      out.push_back(std::move(request));
    }
    return out;
  }

  static std::vector<std::vector<TokenId>> decode_all(Llama& llama, const DraftParts& parts,
                                                      int32_t slots,
                                                      const std::vector<size_t>& chosen) {
    BackboneTarget target(llama, slots, kRows);
    HostDecoder decoder(target, std::make_shared<GreedyRule>(),
                        [] { return std::make_unique<NoneDrafter>(); });
    std::vector<std::vector<TokenId>> texts;
    for (DecodeRequest& each : requests(chosen, parts, texts)) decoder.submit(std::move(each));
    for (const FinishedRequest& ended : decoder.drain()) EXPECT_FALSE(ended.error) << ended.id;
    return texts;
  }

  static void expect_each_as_alone(const Weights& weights, CpuIsa isa) {
    Llama llama(weights, ExecutionContext({.threads = 2, .isa = isa}));
    ASSERT_TRUE(llama.uses_pool());
    fixtures::HeadParts heads(weights);
    std::vector<size_t> every;
    std::vector<std::vector<TokenId>> alone;
    for (size_t i = 0; i < all_asked().size(); ++i) {
      every.push_back(i);
      alone.push_back(decode_all(llama, heads.parts(), 1, {i}).front());
      EXPECT_FALSE(alone.back().empty());
    }
    for (const int32_t slots : {4, 9})
      EXPECT_EQ(decode_all(llama, heads.parts(), slots, every), alone) << slots << " slots";
  }
};

INSTANTIATE_TEST_SUITE_P(OnThisMachine, MixedBatch, testing::ValuesIn(kernels_here()),
                         [](const auto& each) { return each.param.name; });

TEST_P(MixedBatch, GivesEachTheTextItGetsAlone) {
  Weights weights = tiny_weights(1, tiny_config(), at::kBFloat16);
  if (GetParam().quantized) weights = quantized(std::move(weights));
  expect_each_as_alone(weights, GetParam().isa);
}

}  // namespace
}  // namespace medusa
