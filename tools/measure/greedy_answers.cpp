#include "tools/measure/greedy_answers.h"

#include <ATen/ATen.h>

#include <utility>

#include "base/interrupt.h"
#include "infer/rules/greedy_rule.h"

namespace medusa {

GreedyAnswer decode_greedy(BackboneTarget& target, const DrafterFactory& make_drafter,
                           std::vector<TokenId> prompt, const DecodeLimits& limits,
                           bool keep_hidden) {
  GreedyAnswer out;
  DecodeRequest request{std::move(prompt), limits, Random(0), {}};
  request.emit = [&](const EmittedToken& token) {
    out.tokens.push_back(token.id);
    if (keep_hidden) out.hidden.push_back(token.output->hidden[token.row].clone());
    return !interrupted();
  };
  const DecodeStats stats = decode_one(target, GreedyRule(), make_drafter, request).stats;
  out.steps = {static_cast<double>(stats.emitted), static_cast<double>(stats.steps)};
  return out;
}

void add_drafts(HeadStatistics& statistics, HeadsRunner& runner, const GreedyAnswer& answer) {
  const auto count = static_cast<int64_t>(answer.tokens.size()) - runner.num_heads();
  if (count <= 0) return;
  const at::Tensor hidden = at::stack(answer.hidden).narrow(0, 0, count);
  statistics.add_answer(runner.draft_along(hidden, answer.tokens).tokens, answer.tokens);
}

}  // namespace medusa
