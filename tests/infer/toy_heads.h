// What drafters need: Medusa heads over the toy target's states, a choice tree for them, and texts
// to look up.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "heads/eagle3/eagle3_model.h"
#include "heads/heads_runner.h"
#include "heads/tree/choice_tree.h"
#include "infer/drafters/shared_texts.h"
#include "infer/factory.h"
#include "tests/infer/random_texts.h"
#include "tests/infer/text_store_file.h"
#include "tests/infer/toy_draft.h"
#include "tests/infer/toy_model.h"

namespace medusa::fixtures {

/// Heads with random residual layers over any backbone: what they draft is arbitrary but fixed, and
/// sometimes right.
inline MedusaHeads arbitrary_heads(const Weights& weights, int64_t num_heads = 3,
                                   HeadInput input = HeadInput::Root, int64_t correction_rank = 0) {
  HeadsConfig config;
  config.num_heads = num_heads;
  config.input = input;
  config.output = HeadOutput::Shared;
  MedusaHeads heads = make_heads(config, weights, {}, 1);
  if (correction_rank > 0) {  // may be more than the toy's H, from where none could begin
    heads.config.correction_rank = correction_rank;
    const auto empty = [&](int64_t rows) {
      return at::empty({rows, correction_rank}, weights.lm_head.options().dtype(at::kFloat));
    };
    heads.correction = DraftCorrection{empty(heads.vocab_size + 1), {}};
    for (int64_t head = 1; head < num_heads; ++head)
      heads.correction->factors.push_back(empty(heads.vocab_size));
  }
  auto generator = at::make_generator<at::CPUGeneratorImpl>(2);
  for (auto& [name, tensor] : named_parameters(heads))
    tensor.copy_(0.3 * at::randn(tensor.sizes(), generator, at::kFloat));
  return heads;
}

/// What the heads read of a backbone whose states are the toy's.
inline Weights toy_weights() {
  Weights weights;
  weights.config.hidden_size = 2;
  weights.config.vocab_size = kToyVocab;
  weights.config.num_heads = weights.config.num_kv_heads = 1;
  weights.config.head_size = 2;
  weights.config.mlp_size = 4;
  weights.config.context = 1024;
  weights.config.norm_epsilon = 1e-5;
  weights.config.rope_base = 10000;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  weights.embedding = at::randn({kToyVocab, 2}, generator, at::kFloat);
  weights.lm_head = weights.embedding;
  weights.final_norm = at::ones({2});
  return weights;
}

/// An EAGLE-3 draft with random weights for a target: what it drafts is arbitrary but fixed. Its
/// vocabulary is every second token, at most 32 of them.
inline Eagle3Weights arbitrary_eagle3(const Weights& target, std::vector<int32_t> feature_layers) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(4);
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return 0.5 * at::randn({rows, columns}, generator, at::kFloat);
  };
  Eagle3Weights out;
  ModelConfig& c = out.config = target.config;
  c.num_layers = 1;
  c.no_rope.clear();
  c.windows.clear();
  c.qkv_bias = c.qk_norm = false;
  const int64_t h = c.hidden_size, queries = c.num_heads * c.head_size,
                keys = c.num_kv_heads * c.head_size;
  for (TokenId token = 0; token < c.vocab_size && out.tokens.size() < 32; token += 2)
    out.tokens.push_back(token);
  out.fuse = matrix(h, std::ssize(feature_layers) * h);
  out.feature_layers = std::move(feature_layers);
  out.token_norm = out.state_norm = out.final_norm = at::ones({h});
  out.layer.qkv = matrix(queries + 2 * keys, 2 * h);
  out.layer.output = matrix(h, queries);
  out.layer.mlp_norm = at::ones({h});
  out.layer.gate_up = matrix(2 * c.mlp_size, h);
  out.layer.down = matrix(h, c.mlp_size);
  out.lm_head = matrix(std::ssize(out.tokens), h);
  return out;
}

/// Heads, tree and texts for drafters that need them. The texts are of the toy's vocabulary.
class HeadParts {
 public:
  explicit HeadParts(const Weights& weights, HeadInput input = HeadInput::Root,
                     int64_t correction_rank = 0)
      : HeadParts(arbitrary_heads(weights, 3, input, correction_rank), weights) {}
  /// @param heads  three of them.
  HeadParts(MedusaHeads heads, const Weights& weights) : runner_(std::move(heads), weights, 4) {
    shape_.temperatures = {1.5, 1, 0.75};
    for (std::vector<TokenId>& text : random_texts(5, 20, 60, kToyVocab))
      shared_.add(std::move(text));
  }
  DraftParts parts() {
    return {.runner = &runner_, .shape = &shape_, .store = &texts_.store(), .shared = &shared_};
  }
  SharedTexts& shared() { return shared_; }

 private:
  HeadsRunner runner_;
  TreeShape shape_ =
      make_choice_tree({{0}, {1}, {2}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}}, 4, "toy").shape();
  TextStoreFile texts_{random_texts(4, 20, 60, kToyVocab)};
  SharedTexts shared_{1 << 24};
};

class ToyHeads : public HeadParts {
 public:
  explicit ToyHeads(HeadInput input = HeadInput::Root, int64_t correction_rank = 0)
      : HeadParts(toy_weights(), input, correction_rank) {}
  DraftParts parts() {
    DraftParts out = HeadParts::parts();
    out.draft = out.skipping = &draft_;
    out.eagle3 = &eagle3_;
    return out;
  }

 private:
  ToyDraft draft_{0.7F};
  Eagle3Model eagle3_{arbitrary_eagle3(toy_weights(), {1, 2, 5}), toy_weights()};
};

}  // namespace medusa::fixtures
