#include "tools/bench/rounds.h"

#include "base/interrupt.h"
#include "base/progress.h"

namespace medusa {

std::vector<size_t> method_order(size_t num_methods, size_t question, int64_t repeat) {
  std::vector<size_t> order;
  for (size_t i = 0; i < num_methods; ++i)
    order.push_back((question + static_cast<size_t>(repeat) + i) % num_methods);
  return order;
}

bool play_rounds(const RoundPlan& plan, const PlayFunction& play,
                 const std::function<void(const Round&)>& finished) {
  const auto methods = static_cast<int64_t>(plan.num_methods);
  const auto questions = static_cast<int64_t>(plan.num_questions);
  for (size_t method = 0; method < plan.num_methods && !interrupted(); ++method) play(method, 0);
  Progress progress(plan.stage, "answers", plan.repeats * questions * methods);
  int64_t done = 0;
  for (int64_t repeat = 0; repeat < plan.repeats; ++repeat)
    for (size_t question = 0; question < plan.num_questions; ++question) {
      Round round{question, repeat, std::vector<std::vector<Answer>>(plan.num_methods)};
      for (const size_t method : method_order(plan.num_methods, question, repeat)) {
        if (interrupted()) break;
        round.answers[method] = play(method, question);
        progress.update(++done);
      }
      if (interrupted()) {
        progress.finish("interrupted");
        return false;
      }
      finished(round);
    }
  progress.finish();
  return true;
}

}  // namespace medusa
