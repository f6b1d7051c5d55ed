#include "infer/backbone_target.h"

#include <algorithm>

#include "base/check.h"

namespace medusa {

BackboneTarget::BackboneTarget(Llama& llama, int32_t num_slots, int64_t max_rows)
    : llama_(llama),
      cache_(llama.make_cache(num_slots, max_rows)),
      max_rows_(max_rows),
      prompts_(static_cast<size_t>(num_slots)) {
  MEDUSA_ASSERT(max_rows >= 1 && max_rows <= llama.config().context, max_rows,
                llama.config().context);
}

void BackboneTarget::close(int32_t slot) {
  cache_.close(slot);
  prompts_[static_cast<size_t>(slot)].clear();
}

void BackboneTarget::rewind(int32_t slot, int64_t length) {
  cache_.rewind(slot, length);
  auto& prompt = prompts_[static_cast<size_t>(slot)];
  prompt.resize(std::min(prompt.size(), static_cast<size_t>(length)));
}

at::Tensor BackboneTarget::prefill(int32_t slot, std::span<const TokenId> tokens) {
  const int64_t shared = llama_.rows_are_independent() ? share_prefix(slot, tokens) : 0;
  at::Tensor last = llama_.prefill(slot, tokens.subspan(static_cast<size_t>(shared)), cache_);
  prompts_[static_cast<size_t>(slot)].assign(tokens.begin(), tokens.end());
  return last;
}

/// @returns  rows copied; fewer than tokens, since the last token's state has to be computed.
int64_t BackboneTarget::share_prefix(int32_t slot, std::span<const TokenId> tokens) {
  int64_t longest = 0;
  int32_t donor = -1;
  for (size_t other = 0; other < prompts_.size(); ++other) {
    const auto& prompt = prompts_[other];
    const auto end = std::mismatch(prompt.begin(), prompt.end(), tokens.begin(), tokens.end() - 1);
    if (end.first - prompt.begin() <= longest) continue;
    longest = end.first - prompt.begin();
    donor = static_cast<int32_t>(other);
  }
  if (donor >= 0) cache_.copy_prefix(donor, slot, longest);
  return longest;
}

at::Tensor BackboneTarget::draft(const Segment& segment, std::span<const int32_t> layers) {
  return llama_.logits(llama_.forward({&segment, 1}, cache_, layers)).cpu();
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
