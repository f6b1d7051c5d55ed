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
#include "infer/drafter.h"
#include "infer/factory.h"
#include "infer/host_decoder.h"
#include "infer/rules/greedy_rule.h"

namespace medusa {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int64_t kPromptTokens = 150;  // more than one pass of a prompt
constexpr int32_t kNewTokens = 24;
constexpr int64_t kRows = 256;  // of a sequence
// Of the largest logit. Rounding stays below a hundredth, a wrong row or weight comes near to one.
constexpr double kMostDifference = 0.05;

/// @param repeats  the LM head is the embedding: such a random model writes the same tokens again
///                 and again, so that drafts stand.
ModelConfig small_config(bool repeats) {
  ModelConfig config;
  config.tied_output = repeats;
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
                                          static_cast<uint64_t>(small_config(false).vocab_size)));
  return tokens;
}

Llama model_on(const CheckedDevice& checked, bool repeats) {
  Weights weights = random_weights(small_config(repeats), at::kBFloat16, checked.device, kSeed);
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
  Llama reference(random_weights(small_config(false), at::kBFloat16, at::kCPU, kSeed),
                  Kernels::Reference);
  const at::Tensor expected = tree_logits(reference), found = tree_logits(tried);
  const auto largest = expected.abs().max().item<double>();
  const auto difference = (found - expected).abs().max().item<double>();
  if (difference <= kMostDifference * largest) return {};  // false where it is no number
  return fmt::format("logits differ from the reference's by {:.3g} where the largest is {:.3g}",
                     difference, largest);
}

struct GreedyText {
  std::vector<TokenId> tokens;
  int64_t accepted = 0;  // drafts that stood
};

GreedyText greedy_text(Decoder& decoder) {
  GreedyText text;
  bool given = false;
  decode(
      decoder,
      [&]() -> std::optional<DecodeRequest> {
        if (std::exchange(given, true)) return std::nullopt;
        DecodeRequest request;
        request.prompt = some_tokens(20, kPromptTokens);
        request.limits.max_new_tokens = kNewTokens;
        request.emit = [&text](const EmittedToken& token) {
          text.tokens.push_back(token.id);
          return true;
        };
        return request;
      },
      [&text](size_t, const DecodeStats& stats) {
        text.accepted = stats.accepted;
        return true;
      });
  return text;
}

/// @param settings  of the captured steps.
/// @returns  what differs; empty: nothing does.
std::string compare_loops(Llama& llama, const InferConfig& settings, const DraftParts& parts,
                          const DeviceLoopKernels& kernels) {
  BackboneTarget target(llama, 1, kRows);
  HostDecoder host(target, std::make_shared<GreedyRule>(),
                   [] { return std::make_unique<NoneDrafter>(); });
  const std::vector<TokenId> expected = greedy_text(host).tokens;
  const auto captured = make_device_decoder(settings, parts, target, kernels);
  const std::string drafter = enum_name(settings.drafter);
  if (captured == nullptr) return fmt::format("drafter {} has no captured step", drafter);
  const GreedyText found = greedy_text(*captured);
  const auto [at, other] =
      std::mismatch(found.tokens.begin(), found.tokens.end(), expected.begin(), expected.end());
  if (at != found.tokens.end() || other != expected.end())
    return fmt::format("text of captured steps, drafter {}, differs from the host's at token {}",
                       drafter, at - found.tokens.begin());
  if (settings.drafter != DrafterKind::None && found.accepted == 0)
    return "none of the heads' drafts stood in captured steps, expected some";
  return {};
}

std::string compare_loops_with_heads(Llama& llama, InferConfig settings,
                                     const DeviceLoopKernels& kernels) {
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
  settings.drafter = DrafterKind::Medusa;
  return compare_loops(llama, settings, parts, kernels);
}

/// @returns  what differs; empty: nothing does.
std::string find_difference(const CheckedDevice& checked) {
  Llama varied = model_on(checked, /*repeats=*/false);
  std::string finding = compare_logits(varied);
  if (!finding.empty() || !checked.loop.complete()) return finding;
  InferConfig settings;
  settings.drafter = DrafterKind::None;
  settings.rule = RuleKind::Greedy;
  settings.sampling.temperature = 0;
  finding = compare_loops(varied, settings, {}, checked.loop);
  if (!finding.empty()) return finding;
  Llama repeating = model_on(checked, /*repeats=*/true);
  return compare_loops_with_heads(repeating, settings, checked.loop);
}

}  // namespace

CheckedDevice checked_gpu(at::Device device) {
  return {device, cuda_kernels(), cuda_loop_kernels()};
}

std::string check_device(const CheckedDevice& checked) {
  try {
    return find_difference(checked);
  } catch (const Interrupted&) {
    throw;  // says nothing about the device
  } catch (const std::exception& error) {
    const std::string message = error.what();
    return message.substr(0, message.find('\n'));
  }
}

}  // namespace medusa
