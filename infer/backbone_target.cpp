#include "infer/backbone_target.h"

#include "base/check.h"

namespace medusa {

BackboneTarget::BackboneTarget(Llama& llama, int32_t num_slots, int64_t max_rows)
    : llama_(llama), cache_(llama.make_cache(num_slots, max_rows)), max_rows_(max_rows) {
  MEDUSA_ASSERT(max_rows >= 1 && max_rows <= llama.config().context, max_rows,
                llama.config().context);
}

at::Tensor BackboneTarget::prefill(int32_t slot, std::span<const TokenId> tokens) {
  return llama_.prefill(slot, tokens, cache_);
}

std::vector<TargetOutput> BackboneTarget::forward(std::span<const SlotTree> trees) {
  std::vector<Segment> segments;
  segments.reserve(trees.size());
  for (const SlotTree& each : trees)
    segments.push_back({each.slot, each.tree->tokens, each.tree->parents});
  const at::Tensor hidden = llama_.forward(segments, cache_);
  at::Tensor logits = llama_.logits(hidden);
  if (!logits.is_cpu()) logits = logits.cpu();  // the rules walk the tree on the host

  std::vector<TargetOutput> outputs;
  outputs.reserve(trees.size());
  int64_t at = 0;
  for (const SlotTree& each : trees) {
    const int64_t n = each.tree->size();
    outputs.push_back({logits.narrow(0, at, n), hidden.narrow(0, at, n)});
    at += n;
  }
  return outputs;
}

}  // namespace medusa
