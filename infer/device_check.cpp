#include "infer/device_check.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backbone/llama.h"
#include "backbone/random_weights.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "heads/medusa_heads.h"
#include "infer/backbone_target.h"
#include "infer/drafters/none_drafter.h"
#include "infer/host_decoder.h"
#include "infer/make_decoder.h"
#include "infer/rules/greedy_rule.h"

namespace medusa {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int64_t kPromptTokens = 150;  // more than one pass of a prompt
constexpr int32_t kNewTokens = 24;
constexpr int64_t kRows = 256;  // of a sequence
// Of the largest logit. Rounding stays below a hundredth, a wrong row or weight comes near to one.
constexpr double kMostDifference = 0.05;

ModelConfig small_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.num_layers = 2;
  config.hidden_size = 256;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_size = 64;
  config.mlp_size = 512;
  config.vocab_size = 1000;
  config.context = 1024;
  config.norm_epsilon = 1e-5;
  config.rope_base = 10000;
  return config;
}

std::vector<TokenId> some_tokens(uint64_t which, int64_t count) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(Random(kSeed).child(which).bits(RandomUse::Init, i) %
                                          static_cast<uint64_t>(small_config().vocab_size)));
  return tokens;
}

Llama model_on(const CheckedDevice& checked) {
  Weights weights = random_weights(small_config(), at::kBFloat16, checked.device, kSeed);
  if (!checked.kernels.complete()) return Llama(std::move(weights));
  auto backend = std::make_unique<CudaLlama>(weights, checked.kernels);
  return {std::move(weights), std::move(backend)};
}

/// Two sequences of different lengths, a tree behind each, in one pass.
/// @returns  [nodes, V] float32 on the CPU.
at::Tensor tree_logits(Llama& llama) {
  KvCache cache = llama.make_cache(2, kRows);
  const std::vector<int32_t> parents{-1, 0, 0, 1, 1, 2, 3, 3};
  std::vector<std::vector<TokenId>> tokens;
  std::vector<Segment> trees;
  for (const int64_t shorter : {0, 41}) {
    const int32_t slot = cache.open();
    llama.prefill(slot, some_tokens(10, kPromptTokens - shorter), cache);
    tokens.push_back(some_tokens(11 + static_cast<uint64_t>(shorter), std::ssize(parents)));
    trees.push_back({slot, {}, parents});
  }
  for (size_t i = 0; i < trees.size(); ++i) trees[i].tokens = tokens[i];
  return llama.logits(llama.forward(trees, cache)).to(at::kCPU, at::kFloat).clone();
}

/// @returns  what differs; empty: nothing does.
std::string compare_logits(Llama& tried) {
  Llama reference(random_weights(small_config(), at::kBFloat16, at::kCPU, kSeed), Kernels::Plain);
  const at::Tensor expected = tree_logits(reference), found = tree_logits(tried);
  const auto largest = expected.abs().max().item<double>();
  const auto difference = (found - expected).abs().max().item<double>();
  if (difference <= kMostDifference * largest) return {};  // false where it is no number
  return fmt::format("logits differ from the reference's by {:.3g} where the largest is {:.3g}",
                     difference, largest);
}

std::vector<TokenId> greedy_text(Decoder& decoder) {
  std::vector<TokenId> text;
  bool given = false;
  decode(
      decoder,
      [&]() -> std::optional<DecodeRequest> {
        if (std::exchange(given, true)) return std::nullopt;
        DecodeRequest request;
        request.prompt = some_tokens(20, kPromptTokens);
        request.limits.max_new_tokens = kNewTokens;
        request.emit = [&text](const EmittedToken& token) {
          text.push_back(token.id);
          return true;
        };
        return request;
      },
      [](size_t, const DecodeStats&) { return true; });
  return text;
}

/// @returns  what differs; empty: nothing does, or no steps are captured here.
std::string compare_loops(Llama& llama, const DeviceLoopKernels& kernels) {
  if (!kernels.complete()) return {};
  BackboneTarget target(llama, 1, kRows);
  HostDecoder host(target, std::make_shared<GreedyRule>(),
                   [] { return std::make_unique<NoneDrafter>(); });
  const std::vector<TokenId> expected = greedy_text(host);
  HeadsConfig heads_config;
  heads_config.num_heads = 3;
  heads_config.input = HeadInput::Root;
  heads_config.output = HeadOutput::Shared;
  const MedusaHeads heads = make_heads(heads_config, llama.weights(), {}, kSeed);
  const TreeShape shape =
      make_choice_tree({{0}, {1}, {2}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}}, 3, "device check")
          .shape();
  DraftParts parts;
  parts.heads = &heads;
  parts.shape = &shape;
  for (const DrafterKind drafter : {DrafterKind::None, DrafterKind::Medusa}) {
    InferConfig settings;
    settings.drafter = drafter;
    settings.rule = RuleKind::Greedy;
    settings.sampling.temperature = 0;
    const auto captured = make_device_decoder(settings, parts, target, kernels);
    if (captured == nullptr)
      return fmt::format("drafter {} has no captured step", enum_name(drafter));
    const std::vector<TokenId> found = greedy_text(*captured);
    const auto [at, other] =
        std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
    if (at != found.end() || other != expected.end())
      return fmt::format(
          "text of captured steps, drafter {}, differs from the host's loop at token {}",
          enum_name(drafter), at - found.begin());
  }
  return {};
}

}  // namespace

CheckedDevice checked_gpu(at::Device device) {
  return {device, cuda_kernels(), cuda_loop_kernels()};
}

DeviceCheck check_device(const CheckedDevice& checked) {
  try {
    Llama llama = model_on(checked);
    std::string finding = compare_logits(llama);
    if (finding.empty()) finding = compare_loops(llama, checked.loop);
    return {finding.empty(), finding};
  } catch (const Interrupted&) {
    throw;  // says nothing about the device
  } catch (const std::exception& error) {
    const std::string message = error.what();
    return {false, message.substr(0, message.find('\n'))};
  }
}

}  // namespace medusa
