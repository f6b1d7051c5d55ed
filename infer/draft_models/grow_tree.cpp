#include "infer/draft_models/grow_tree.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace medusa {
namespace {

/// Rows that the tree may have in the draft model's cache, where the text before the root lies too.
int64_t room_for(const DraftSequence& sequence, const DraftContext& context) {
  return sequence.max_rows() - static_cast<int64_t>(context.tokens.size()) + 1;
}

}  // namespace

DraftedTree grow_tree(DraftSequence& sequence, const DraftChoice& choice,
                      const DraftContext& context, const Random& random,
                      const ChildCount& children) {
  DraftedTree out{root_only(context.tokens.back()), {1.0}, {0}};
  CandidateTree& tree = out.tree;
  const auto most =
      static_cast<int32_t>(std::min<int64_t>(context.max_nodes, room_for(sequence, context)));
  const auto root_position = static_cast<int64_t>(context.tokens.size()) - 1;
  std::vector<float> rows;  // [nodes below the root, V]
  int64_t vocab_size = 0;

  for (int32_t begin = 0, depth = 0; depth < context.max_depth; ++depth) {
    const int32_t end = tree.size();  // the level is [begin, end)
    std::vector<int32_t> counts;
    for (int32_t node = begin; node < end; ++node) counts.push_back(children(out, node));
    if (tree.size() >= most ||
        std::all_of(counts.begin(), counts.end(), [](int32_t count) { return count <= 0; }))
      break;
    const at::Tensor logits = sequence.extend(context, tree, begin);
    vocab_size = logits.size(1);
    for (int32_t node = begin; node < end; ++node) {
      const int32_t count = std::min(counts[static_cast<size_t>(node - begin)], most - tree.size());
      if (count <= 0) continue;
      for (const DraftedToken& token : choice.choose(logits_row(logits, node - begin), count,
                                                     random, root_position + depth, &rows)) {
        tree.tokens.push_back(token.id);
        tree.parents.push_back(node);
        out.probabilities.push_back(token.probability);
        out.depths.push_back(depth + 1);
      }
    }
    begin = end;
  }
  tree.num_verify = tree.size();
  if (!rows.empty()) tree.draft_probs = draft_probs_tensor(rows, vocab_size);
  return out;
}

at::Tensor draft_probs_tensor(const std::vector<float>& rows, int64_t vocab_size) {
  const auto count = static_cast<int64_t>(rows.size()) / vocab_size;
  at::Tensor probs = at::zeros({count + 1, vocab_size}, at::kFloat);
  std::copy(rows.begin(), rows.end(), static_cast<float*>(probs.data_ptr()) + vocab_size);
  return probs;
}

}  // namespace medusa
