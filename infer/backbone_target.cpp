#include "infer/backbone_target.h"

#include <ATen/ATen.h>

#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace medusa {

BackboneTarget::BackboneTarget(Llama& llama, int32_t num_slots, int64_t max_rows,
                               std::optional<int64_t> max_bytes)
    : llama_(llama),
      cache_(llama.make_cache(num_slots, max_rows, max_bytes)),
      max_rows_(max_rows),
      trees_(static_cast<size_t>(num_slots)) {
  MEDUSA_ASSERT(max_rows >= 1 && max_rows <= llama.config().context, max_rows,
                llama.config().context);
}

/// Where LibTorch computes on the CPU, its own threads are spinning between passes.
ThreadPool* BackboneTarget::idle_threads() const {
  const bool are_free = llama_.uses_pool() || !llama_.device().is_cpu();
  return are_free ? llama_.execution().pool().get() : nullptr;
}

void BackboneTarget::close(int32_t slot) { cache_.close(slot); }

at::Tensor BackboneTarget::states(std::span<const TokenId> tokens) {
  const int32_t slot = open(std::ssize(tokens));
  at::Tensor states = llama_.states(slot, tokens, cache_);
  close(slot);
  return states;
}

void BackboneTarget::rewind(int32_t slot, int64_t length) { cache_.rewind(slot, length); }

int64_t BackboneTarget::reuse_prefix(int32_t slot, std::span<const TokenId> tokens) {
  MEDUSA_ASSERT(!tokens.empty() && cache_.length(slot) == 0, slot);
  if (!rows_are_independent()) return 0;
  return cache_.reuse(slot, tokens, std::ssize(tokens) - 1);
}

void BackboneTarget::commit(int32_t slot, std::span<const int32_t> nodes) {
  const std::vector<TokenId>& tree = trees_.at(static_cast<size_t>(slot));
  std::vector<TokenId> tokens;
  tokens.reserve(nodes.size());
  for (const int32_t node : nodes) tokens.push_back(tree.at(static_cast<size_t>(node)));
  commit(slot, nodes, tokens);
}

/// Where a row's bits depend on its neighbors, nobody may find it.
void BackboneTarget::commit(int32_t slot, std::span<const int32_t> rows,
                            std::span<const TokenId> tokens) {
  cache_.commit(slot, rows, rows_are_independent() ? tokens : std::span<const TokenId>());
}

at::Tensor BackboneTarget::draft(const Segment& segment, std::span<const int32_t> layers) {
  return llama_.logits(llama_.forward({&segment, 1}, cache_, layers)).cpu();
}

PassOutput BackboneTarget::forward(std::span<const SlotTree> trees,
                                   std::span<const PromptChunk> chunks) {
  std::vector<Segment> segments;
  segments.reserve(trees.size() + chunks.size());
  int64_t tree_rows = 0;
  for (const SlotTree& each : trees) {
    segments.push_back({each.slot, each.tree->tokens, each.tree->parents});
    trees_.at(static_cast<size_t>(each.slot)) = each.tree->tokens;
    tree_rows += each.tree->size();
  }
  for (const PromptChunk& each : chunks) segments.push_back({each.slot, each.tokens, {}});
  Features features = wanted_features(trees, chunks);
  const at::Tensor hidden =
      llama_.forward(segments, cache_, {}, features.rows.empty() ? nullptr : &features);

  PassOutput output;
  int64_t at = tree_rows;
  for (const PromptChunk& each : chunks) {
    std::vector<int32_t> rows(each.tokens.size());
    std::iota(rows.begin(), rows.end(), 0);
    commit(each.slot, rows, each.tokens);
    at += std::ssize(each.tokens);
    output.prompt_states.push_back(hidden[at - 1].clone());
  }
  add_logits(trees, chunks, hidden, output);
  add_features(trees, chunks, features, output);
  return output;
}

/// The layers that anyone reads, and the rows of those who do.
Features BackboneTarget::wanted_features(std::span<const SlotTree> trees,
                                         std::span<const PromptChunk> chunks) {
  Features features;
  std::set<int32_t> layers;
  int32_t at = 0;
  const auto add = [&](std::span<const int32_t> own, size_t num_rows) {
    layers.insert(own.begin(), own.end());
    const auto count = static_cast<int32_t>(num_rows);
    for (int32_t row = at; !own.empty() && row < at + count; ++row) features.rows.push_back(row);
    at += count;
  };
  for (const SlotTree& each : trees) add(each.feature_layers, each.tree->tokens.size());
  for (const PromptChunk& each : chunks) add(each.feature_layers, each.tokens.size());
  features.layers.assign(layers.begin(), layers.end());
  return features;
}

/// Gives each tree and chunk its rows, of the layers that it asked for.
void BackboneTarget::add_features(std::span<const SlotTree> trees,
                                  std::span<const PromptChunk> chunks, const Features& features,
                                  PassOutput& output) {
  int64_t at = 0;
  const auto next = [&](std::span<const int32_t> own, int64_t count) {
    at::Tensor part = features.values.narrow(0, std::exchange(at, at + count), count);
    if (std::ssize(own) == std::ssize(features.layers)) return part;
    std::vector<int64_t> places;
    for (const int32_t layer : own) places.push_back(*features.place_of(layer));
    return part.index_select(1, at::tensor(places, at::kLong).to(part.device()));
  };
  for (size_t i = 0; i < trees.size(); ++i)
    if (!trees[i].feature_layers.empty())
      output.trees[i].features = next(trees[i].feature_layers, trees[i].tree->size());
  output.prompt_features.resize(chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i)
    if (!chunks[i].feature_layers.empty())
      output.prompt_features[i] = next(chunks[i].feature_layers, std::ssize(chunks[i].tokens));
}

/// One GEMM with the LM head for all rows that want logits.
void BackboneTarget::add_logits(std::span<const SlotTree> trees,
                                std::span<const PromptChunk> chunks, const at::Tensor& hidden,
                                PassOutput& output) {
  std::vector<at::Tensor> wanted;
  int64_t at = 0;
  for (const SlotTree& each : trees) at += each.tree->size();
  if (at > 0) wanted.push_back(hidden.narrow(0, 0, at));
  for (const PromptChunk& each : chunks) {
    if (each.wants_logits) wanted.push_back(hidden.narrow(0, at, std::ssize(each.tokens)));
    at += std::ssize(each.tokens);
  }
  output.prompt_logits.resize(chunks.size());
  if (wanted.empty()) return;
  const at::Tensor logits = llama_.logits(wanted.size() == 1 ? wanted[0] : at::cat(wanted));

  at = 0;
  output.trees.reserve(trees.size());
  for (const SlotTree& each : trees) {
    const int64_t n = each.tree->size();
    output.trees.push_back({logits.narrow(0, at, n), hidden.narrow(0, at, n)});
    at += n;
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (!chunks[i].wants_logits) continue;
    const auto n = std::ssize(chunks[i].tokens);
    output.prompt_logits[i] = logits.narrow(0, at, n).cpu();  // all of them are read
    at += n;
  }
}

}  // namespace medusa
