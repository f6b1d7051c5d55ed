#include "tools/answer.h"

#include <utility>

#include "base/interrupt.h"
#include "data/text_stream.h"
#include "infer/sampling.h"

namespace medusa {
namespace {

TokenLogprobs logprobs_of(const EmittedToken& token, int64_t count) {
  const auto row = logits_row(token.output->logits, token.row);
  TokenLogprobs out;
  out.chosen = log_probability(row, token.id);
  for (const TokenId id : largest_tokens(row, count))
    out.largest.emplace_back(id, log_probability(row, id));
  return out;
}

}  // namespace

Answer answer(const Session& session, const Engine& engine, std::vector<TokenId> prompt,
              const AnswerOptions& options) {
  Answer out;
  TextStream stream(*session.tokenizer);
  StopMatcher matcher(options.stop);
  const auto show = [&](std::string_view piece) {
    out.text += piece;
    if (options.show && !piece.empty()) options.show(piece);
  };

  DecodeRequest request;
  request.prompt = std::move(prompt);
  request.limits = {.max_new_tokens = options.max_new_tokens, .eos = session.eos};
  request.random = Random(options.seed);
  request.emit = [&](const EmittedToken& token) {
    out.tokens.push_back(token.id);
    if (options.logprobs > 0) out.logprobs.push_back(logprobs_of(token, options.logprobs));
    show(matcher.add(stream.add(token.id)));
    return !matcher.stopped() && !interrupted();
  };
  DecodeResult result =
      decode_one(engine.target, engine.rule, engine.make_drafter, std::move(request));
  if (!matcher.stopped()) {
    show(matcher.add(stream.finish()));
    show(matcher.finish());
  }
  out.stopped_by_text = matcher.stopped();
  out.stats = std::move(result.stats);
  out.times = result.times;
  return out;
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
