#include "infer/drafters/prefix_drafter.h"

#include <ATen/ATen.h>

#include <utility>

#include "base/check.h"
#include "heads/heads_runner.h"

namespace medusa {

/// @returns [H] behind the layer, at the token before the root.
at::Tensor PrefixDrafter::state(const DraftContext& context) {
  // Before the first step the state lies inside the prompt, where training has no positions: it is
  // looked at as a first one and not kept.
  if (states_.empty() && !last_.defined())
    return text_.peek(context.hidden.unsqueeze(0), context.tokens.last(1))[0];
  if (!states_.empty()) {
    MEDUSA_ASSERT(roots_.back() == context.tokens.back(), roots_.back());
    last_ = text_.extend(at::cat(states_), roots_)[-1];
    states_.clear();
    roots_.clear();
  }
  return last_;
}

CandidateTree PrefixDrafter::propose(const DraftContext& context, const Random& random) {
  DraftContext read = context;
  const bool may_draft = context.max_depth > 0 && context.max_nodes > 1;
  if (context.hidden.defined() && may_draft) read.hidden = state(context);
  return inner_->propose(read, random);
}

void PrefixDrafter::observe(const CandidateTree& tree, const TargetOutput& output,
                            const Acceptance& accepted) {
  std::vector<int64_t> nodes{0};
  nodes.insert(nodes.end(), accepted.path.begin(), accepted.path.end());
  const at::Tensor rows = at::tensor(nodes, at::kLong).to(output.hidden.device());
  states_.push_back(output.hidden.index_select(0, rows));  // a copy
  for (const TokenId token : emitted_tokens(tree, accepted.path, accepted.next))
    roots_.push_back(token);
  inner_->observe(tree, output, accepted);
}

std::unique_ptr<Drafter> behind_prefix(std::unique_ptr<Drafter> drafter,
                                       const HeadsRunner& runner) {
  if (runner.prefix() == nullptr) return drafter;
  return std::make_unique<PrefixDrafter>(std::move(drafter), *runner.prefix());
}

}  // namespace medusa
