#include "tools/bench/rounds.h"

#include "base/interrupt.h"
#include "base/stderr_progress.h"

namespace medusa {

std::vector<size_t> method_order(size_t num_methods, size_t question, int64_t repeat) {
  std::vector<size_t> order;
  for (size_t i = 0; i < num_methods; ++i)
    order.push_back((question + static_cast<size_t>(repeat) + i) % num_methods);
  return order;
}

void warm_up(const std::string& stage, size_t num_methods,
             const std::function<void(size_t method)>& run_method) {
  Progress progress(stderr_progress(), stage + ": warm up", "methods",
                    static_cast<int64_t>(num_methods));
  for (size_t method = 0; method < num_methods && !interrupted(); ++method) {
    run_method(method);
    progress.update(static_cast<int64_t>(method) + 1);
  }
  progress.finish(interrupted() ? "interrupted" : "");
}

bool run_rounds(const RoundPlan& plan, const RunFunction& run_method,
                const std::function<void(const Round&)>& finished) {
  const auto methods = static_cast<int64_t>(plan.num_methods);
  const auto questions = static_cast<int64_t>(plan.num_questions);
  Progress progress(stderr_progress(), plan.stage, "answers", plan.repeats * questions * methods);
  int64_t done = 0;
  for (int64_t repeat = 0; repeat < plan.repeats; ++repeat)
    for (size_t question = 0; question < plan.num_questions; ++question) {
      Round round{question, repeat, std::vector<std::vector<Answer>>(plan.num_methods)};
      for (const size_t method : method_order(plan.num_methods, question, repeat)) {
        std::vector<Answer> answers;
        if (!interrupted()) answers = run_method(method, question);
        if (interrupted()) {  // it may have been cut off in the middle
          round.whole = false;
          break;
        }
        round.answers[method] = std::move(answers);
        progress.update(++done);
      }
      if (!round.whole) {
        progress.finish("interrupted");
        finished(round);
        return false;
      }
      finished(round);
    }
  progress.finish();
  return true;
}

}  // namespace medusa
