#include "tools/bench/rounds.h"

#include <utility>

#include "base/interrupt.h"
#include "base/stderr_progress.h"

namespace medusa {

bool Method::same_text() const {
  if (temperature() == 0) return lossless;
  const RuleKind kind = resolved_rule(settings);
  return kind == RuleKind::Match || kind == RuleKind::Nucleus;  // the same rule by two names
}

Method make_method(const InferConfig& settings, const DraftParts& parts, BackboneTarget& target) {
  auto decoder = make_decoder(settings, parts, target);
  return {settings, make_rule(settings)->lossless(), std::move(decoder)};
}

std::vector<std::vector<Answer>> run_conversations(const Model& model, Decoder& decoder,
                                                   const std::vector<SeededPrompt>& conversations,
                                                   const AnswerOptions& options) {
  std::vector<std::vector<Answer>> answers(conversations.size());
  std::vector<std::vector<ChatMessage>> messages;
  for (const SeededPrompt& each : conversations) messages.push_back(each.prompt->messages);
  for (size_t turn = 0;; ++turn) {
    std::vector<size_t> asked;
    std::vector<AnswerRequest> requests;
    for (size_t i = 0; i < conversations.size(); ++i) {
      if (answers[i].size() < turn) continue;  // it has ended
      if (turn > 0) {
        const std::vector<std::string>& later = conversations[i].prompt->later_turns;
        if (turn > later.size()) continue;
        messages[i].push_back({"assistant", answers[i].back().text});
        messages[i].push_back({"user", later[turn - 1]});
      }
      std::vector<TokenId> tokens = model.encode(messages[i]);
      if (turn > 0 && static_cast<int64_t>(tokens.size()) >= model.context) continue;
      asked.push_back(i);
      requests.push_back({std::move(tokens), conversations[i].seed});
    }
    if (asked.empty() || (turn > 0 && interrupted())) return answers;
    std::vector<Answer> given = answer_together(model, decoder, requests, options);
    for (size_t k = 0; k < asked.size(); ++k) answers[asked[k]].push_back(std::move(given[k]));
  }
}

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
