// A target without weights: what follows a context is a fixed function of its last three tokens.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "infer/sampling.h"
#include "infer/target_model.h"

namespace medusa::fixtures {

constexpr int64_t kToyVocab = 7;

inline const std::vector<TokenId> kPrompt{1, 2, 3};
inline const SamplingConfig kGreedy;
inline const SamplingConfig kWarm{.temperature = 0.9};

/// [V] logits in (-2, 2) after a context.
inline std::vector<float> toy_logits(std::span<const TokenId> context) {
  int64_t state = 0;
  for (size_t i = context.size() > 3 ? context.size() - 3 : 0; i < context.size(); ++i)
    state = state * (kToyVocab + 1) + context[i] + 1;
  std::vector<float> logits;
  for (uint64_t v = 0; v < kToyVocab; ++v)
    logits.push_back(static_cast<float>(4 * Random(9).uniform(RandomUse::Init, state, v) - 2));
  return logits;
}

/// State at a context's last token: which one it is and where it stands.
inline std::vector<float> toy_state(std::span<const TokenId> context) {
  return {static_cast<float>(context.back()), static_cast<float>(context.size() - 1)};
}

/// What stands before a layer at a context's last token.
inline std::vector<float> toy_feature(std::span<const TokenId> context, int32_t layer) {
  const std::vector<float> state = toy_state(context);
  return {0.1F * state[0] + static_cast<float>(layer), 0.01F * state[1] - 0.5F * state[0]};
}

/// [F, H] of several layers; undefined for none.
inline at::Tensor toy_features(std::span<const TokenId> context, std::span<const int32_t> layers) {
  std::vector<at::Tensor> rows;
  for (const int32_t layer : layers) rows.push_back(at::tensor(toy_feature(context, layer)));
  return rows.empty() ? at::Tensor() : at::stack(rows);
}

/// How plain decoding chooses a token: greedy, or by the seed's draw for that position.
inline TokenId plain_choice(std::span<const TokenId> context, const SamplingConfig& sampling,
                            const Random& random) {
  const std::vector<float> logits = toy_logits(context);
  if (sampling.temperature == 0)
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  return draw(target_distribution(logits, sampling), random, RandomUse::Accept,
              static_cast<int64_t>(context.size()) - 1);
}

/// The text after a prompt without any of the decoder's code.
inline std::vector<TokenId> plain_text(const std::vector<TokenId>& prompt, size_t count,
                                       const SamplingConfig& sampling, const Random& random) {
  std::vector<TokenId> context = prompt;
  while (context.size() < prompt.size() + count)
    context.push_back(plain_choice(context, sampling, random));
  return {context.begin() + static_cast<std::ptrdiff_t>(prompt.size()), context.end()};
}

/// Several slots, each a list of tokens. Asserts what the contract asks of its caller.
class ToyTarget : public TargetModel {
 public:
  explicit ToyTarget(int32_t num_slots = 1, int64_t max_rows = 1000)
      : slots_(static_cast<size_t>(num_slots)), max_rows_(max_rows) {}

  int32_t num_free_slots() const override {
    return static_cast<int32_t>(
        std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.open; }));
  }
  bool has_room(int64_t rows) const override {
    return num_free_slots() > 0 && reserved_rows() + rows <= pool_rows;
  }
  using TargetModel::open;
  int32_t open(int64_t rows) override {
    MEDUSA_ASSERT(has_room(rows), rows);
    const auto slot = std::find_if(slots_.begin(), slots_.end(), [](auto& s) { return !s.open; });
    MEDUSA_ASSERT(slot != slots_.end());
    *slot = {true, rows, {}, {}};
    return static_cast<int32_t>(slot - slots_.begin());
  }
  void close(int32_t slot) override {
    MEDUSA_ASSERT(at(slot).open, slot);
    at(slot).open = false;
    closed.push_back(at(slot).rows);
  }
  int64_t max_rows() const override { return max_rows_; }
  int64_t total_rows() const override { return pool_rows; }
  int64_t reserved_rows() const {
    int64_t sum = 0;
    for (const Slot& slot : slots_) sum += slot.open ? slot.reserved : 0;
    return sum;
  }

  using TargetModel::forward;
  PassOutput forward(std::span<const SlotTree> trees,
                     std::span<const PromptChunk> chunks) override {
    PassOutput output;
    output.trees = run_trees(trees);
    for (const PromptChunk& each : chunks) {
      if (fail_prefill) throw std::runtime_error("prefill failed");
      std::vector<TokenId>& rows = at(each.slot).rows;
      MEDUSA_ASSERT(at(each.slot).open && !each.tokens.empty(), each.slot);
      std::vector<at::Tensor> logits, features;
      for (const TokenId token : each.tokens) {
        rows.push_back(token);
        logits.push_back(at::tensor(toy_logits(rows)));
        features.push_back(toy_features(rows, each.feature_layers));
      }
      output.prompt_features.push_back(each.feature_layers.empty() ? at::Tensor()
                                                                   : at::stack(features));
      output.prompt_logits.push_back(each.wants_logits ? at::stack(logits) : at::Tensor());
      largest_chunk = std::max(largest_chunk, each.tokens.size());
      output.prompt_states.push_back(at::tensor(toy_state(rows)));
    }
    ++num_passes;
    sequences_per_pass.push_back(trees.size());
    prompts_per_pass.push_back(chunks.size());
    return output;
  }

  void commit(int32_t slot, std::span<const int32_t> nodes) override {
    MEDUSA_ASSERT(at(slot).open && std::is_sorted(nodes.begin(), nodes.end()), slot);
    for (const int32_t node : nodes)
      at(slot).rows.push_back(at(slot).tree.tokens.at(static_cast<size_t>(node)));
  }

  std::vector<std::vector<TokenId>> closed;  // the rows of each slot when it was closed
  int64_t num_passes = 0;
  std::vector<size_t> sequences_per_pass, prompts_per_pass;
  size_t largest_chunk = 0;  // tokens
  int32_t largest_tree = 0;  // nodes
  bool fail_prefill = false;
  int64_t pool_rows = std::numeric_limits<int64_t>::max();  // of all open slots together

 private:
  struct Slot {
    bool open = false;
    int64_t reserved = 0;
    std::vector<TokenId> rows;  // committed
    CandidateTree tree;         // tentative
  };

  std::vector<TargetOutput> run_trees(std::span<const SlotTree> trees) {
    std::vector<TargetOutput> outputs;
    for (const SlotTree& each : trees) {
      const CandidateTree& tree = *each.tree;
      Slot& slot = at(each.slot);
      MEDUSA_ASSERT(slot.open, each.slot);
      MEDUSA_ASSERT(static_cast<int64_t>(slot.rows.size()) + tree.size() <= slot.reserved,
                    tree.size());
      largest_tree = std::max(largest_tree, tree.size());
      slot.tree = tree;
      std::vector<at::Tensor> logits, hidden, features;
      for (int32_t node = 0; node < tree.size(); ++node) {
        const std::vector<TokenId> context = context_of(slot, node);
        logits.push_back(at::tensor(toy_logits(context)));
        hidden.push_back(at::tensor(toy_state(context)));
        features.push_back(toy_features(context, each.feature_layers));
      }
      outputs.push_back({at::stack(logits), at::stack(hidden)});
      if (!each.feature_layers.empty()) outputs.back().features = at::stack(features);
    }
    return outputs;
  }

  Slot& at(int32_t slot) { return slots_.at(static_cast<size_t>(slot)); }

  static std::vector<TokenId> context_of(const Slot& slot, int32_t node) {
    std::vector<TokenId> context;
    for (; node >= 0; node = slot.tree.parents[static_cast<size_t>(node)])
      context.push_back(slot.tree.tokens[static_cast<size_t>(node)]);
    context.insert(context.end(), slot.rows.rbegin(), slot.rows.rend());
    std::reverse(context.begin(), context.end());
    return context;
  }

  std::vector<Slot> slots_;
  int64_t max_rows_;
};

}  // namespace medusa::fixtures
