#include "runtime/answer.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/interrupt.h"
#include "data/tokenizer/text_stream.h"
#include "infer/factory.h"
#include "infer/logits/target_logits.h"
#include "infer/sampling.h"

namespace medusa {
namespace {

TokenLogprobs logprobs_of(const EmittedToken& token, int64_t count) {
  const TargetLogits logits(token.output->logits);  // perhaps a device's
  const auto row = logits.row(token.row);
  TokenLogprobs out;
  out.chosen = log_probability(row, token.id);
  for (const TokenId id : largest_tokens(row, count))
    out.largest.emplace_back(id, log_probability(row, id));
  return out;
}

/// An answer while it is decoded.
class GrowingAnswer {
 public:
  GrowingAnswer(const Model& model, const AnswerOptions& options, const AnswerRequest& asked,
                size_t index)
      : model_(model),
        options_(options),
        index_(index),
        text_(*model.tokenizer, asked.stop.value_or(options.stop)) {}

  /// The request refers to this.
  DecodeRequest request(const AnswerRequest& asked) {
    DecodeRequest request;
    request.prompt = asked.prompt;
    request.limits = {.max_new_tokens = options_.max_new_tokens, .eos = model_.eos};
    request.random = Random(asked.seed);
    if (asked.infer) {
      MEDUSA_ASSERT(options_.drafter_of != nullptr);
      request.limits.max_new_tokens = asked.infer->max_new_tokens;
      request.rule = make_rule(*asked.infer);
      request.make_drafter = options_.drafter_of(*asked.infer);
    }
    request.emit = [this](const EmittedToken& token) {
      answer_.tokens.push_back(token.id);
      if (token.begins_step) answer_.steps.emplace_back();
      ++answer_.steps.back().num_tokens;
      if (options_.logprobs > 0) answer_.logprobs.push_back(logprobs_of(token, options_.logprobs));
      show(text_.add(token.id));
      return wanted_ && !text_.stopped() && !interrupted();
    };
    return request;
  }

  Answer finish(DecodeStats stats) {
    show(text_.finish());
    answer_.stopped_by_text = text_.stopped();
    answer_.stats = std::move(stats);
    return std::move(answer_);
  }

 private:
  void show(std::string_view piece) {
    answer_.text += piece;
    if (!answer_.steps.empty()) answer_.steps.back().text += piece;
    if (options_.show && !piece.empty() && wanted_) wanted_ = options_.show(index_, piece);
  }

  const Model& model_;
  const AnswerOptions& options_;
  size_t index_;
  bool wanted_ = true;  // as show() says
  Answer answer_;
  TextUntilStop text_;
};

DecodeTimes share_of(const DecodeTimes& times, double share) {
  return {times.prefill_s * share, times.propose_s * share, times.verify_s * share,
          times.accept_s * share, times.commit_s * share};
}

}  // namespace

std::vector<Answer> answer_together(const Model& model, Decoder& decoder,
                                    const std::vector<AnswerRequest>& requests,
                                    const AnswerOptions& options) {
  std::deque<GrowingAnswer> growing;  // whose elements stay where they are
  const auto next = [&]() -> std::optional<DecodeRequest> {
    if (growing.size() == requests.size()) return std::nullopt;
    const AnswerRequest& asked = requests[growing.size()];
    return growing.emplace_back(model, options, asked, growing.size()).request(asked);
  };
  std::vector<Answer> answers(requests.size());
  double tokens = 0;
  const auto finished = [&](size_t i, const DecodeStats& stats) {
    answers[i] = growing[i].finish(stats);
    tokens += static_cast<double>(stats.emitted);
    return true;
  };
  const DecodeTimes times = decode(decoder, next, finished);
  for (Answer& each : answers)
    each.times = share_of(times, static_cast<double>(each.stats.emitted) / std::max(tokens, 1.0));
  return answers;
}

Answer answer(const Model& model, Decoder& decoder, AnswerRequest request,
              const AnswerOptions& options) {
  return std::move(answer_together(model, decoder, {std::move(request)}, options).front());
}

const char* finish_name(const Answer& answer) {
  switch (answer.stats.finish) {
    case FinishReason::Eos:
      return "eos";
    case FinishReason::Length:
      return "length";
    case FinishReason::Context:
      return "context";
    default:
      return answer.stopped_by_text ? "stop" : "interrupted";
  }
}

}  // namespace medusa
