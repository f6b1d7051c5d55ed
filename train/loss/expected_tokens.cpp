#include "train/loss/expected_tokens.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "heads/head_statistics.h"
#include "heads/heads_runner.h"
#include "heads/tree/tree_search.h"

namespace medusa {
namespace {

constexpr int64_t kNodes = 32;
constexpr int64_t kTopK = 10;

}  // namespace

double expected_tokens_per_step(const MedusaHeads& heads, const Weights& backbone,
                                const ExpectedTokensText& text, const ExecutionContext& execution) {
  const int64_t num_heads = heads.config.num_heads;
  HeadsRunner runner(heads, backbone, std::min(kTopK, heads.output_rows()), execution);
  HeadStatistics statistics(num_heads, runner.top_k());
  for (const int64_t sample : text.samples) {
    if (statistics.num_positions() >= text.most_positions) break;
    const auto answer = text.dataset.answer(sample);
    const int64_t count = std::ssize(answer) - num_heads;  // with a true token for every head
    if (count <= 0) continue;
    const at::Tensor states = text.hidden(sample)
                                  .narrow(0, 0, count)
                                  .to(backbone.lm_head.device(), backbone.lm_head.scalar_type());
    statistics.add_answer(runner.draft_along(states, answer).tokens, answer);
  }
  if (statistics.num_positions() == 0) return 0;
  std::vector<RankPath> paths;
  for (const PathValue& each : rank_paths(statistics, kNodes - 1)) paths.push_back(each.path);
  return tokens_per_step(statistics, paths, StepStarts::Replayed);
}

}  // namespace medusa
