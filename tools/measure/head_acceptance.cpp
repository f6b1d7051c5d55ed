#include "tools/measure/head_acceptance.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/stderr_progress.h"
#include "heads/tree/tree_search.h"
#include "infer/factory.h"
#include "tools/measure/greedy_answers.h"

namespace medusa {
namespace {

HeadAcceptance summarize(const HeadStatistics& statistics) {
  HeadAcceptance out;
  out.num_answers = statistics.num_answers();
  out.num_positions = statistics.num_positions();
  const auto positions = static_cast<double>(statistics.num_positions());
  for (const std::vector<int64_t>& counts : statistics.head_counts()) {
    int64_t right = 0;
    for (const int64_t count : counts) right += count;
    out.top_1.push_back(static_cast<double>(counts.front()) / positions);
    out.top_5.push_back(static_cast<double>(right) / positions);
  }
  std::vector<RankPath> chain;
  for (int64_t depth = 1; depth <= statistics.num_heads(); ++depth)
    chain.emplace_back(static_cast<size_t>(depth), 0);
  out.chain_tokens_per_step = tokens_per_step(statistics, chain, StepStarts::Replayed);
  return out;
}

}  // namespace

HeadAcceptance measure_acceptance(const Model& model, const MedusaHeads& heads,
                                  const std::vector<std::string>& prompts, int32_t max_new_tokens) {
  constexpr int64_t kDrafts = 5;
  BackboneTarget target(*model.llama, 1, model.context);
  HeadsRunner runner(heads, model.llama->weights(), std::min(kDrafts, heads.output_rows()),
                     model.llama->execution());
  InferConfig infer;
  infer.drafter = DrafterKind::None;
  const DrafterFactory plain = make_drafter_factory(infer, {});
  HeadStatistics statistics(runner.num_heads(), runner.top_k());
  Progress progress(stderr_progress(), "measure", "answers", static_cast<int64_t>(prompts.size()));
  int64_t done = 0;
  for (const std::string& prompt : prompts) {
    const std::vector<TokenId> tokens = model.encode({{"user", prompt}});
    const auto room = model.context - static_cast<int64_t>(tokens.size()) - 1;
    if (room <= 0) continue;
    const DecodeLimits limits{
        .max_new_tokens = static_cast<int32_t>(std::min<int64_t>(max_new_tokens, room)),
        .eos = model.eos};
    const GreedyAnswer answer = decode_greedy(target, plain, tokens, limits, /*keep_hidden=*/true);
    if (interrupted()) break;
    add_drafts(statistics, runner, answer);
    progress.update(++done);
  }
  progress.finish();
  if (interrupted() && statistics.num_positions() == 0)
    throw UserError(
        "doctor: interrupted before the first answer was finished, expected at least one; run the "
        "same command again");
  if (statistics.num_positions() == 0)
    throw UserError(fmt::format(
        "doctor: no answer is longer than the {} heads look ahead, expected some; ask other "
        "questions with --questions or raise --tokens",
        runner.num_heads()));
  return summarize(statistics);
}

}  // namespace medusa
