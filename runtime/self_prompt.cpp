#include "runtime/self_prompt.h"

#include <algorithm>

#include "data/starter_topics.h"
#include "runtime/generation.h"

namespace medusa {
namespace {

/// The model's end tokens, and the one that its template puts behind a user's turn.
std::vector<TokenId> ends_of_question(const Model& model) {
  std::vector<TokenId> ends = model.eos;
  const auto end = model.tokenizer->find(model.chat.end_of_user_turn());
  if (end && !std::binary_search(ends.begin(), ends.end(), *end))
    ends.insert(std::upper_bound(ends.begin(), ends.end(), *end), *end);
  return ends;
}

/// The question as the model finished it; empty if it did not end its turn within the limit, since
/// half a question is none. Some templates end a turn with words, not with a token.
std::string finished_question(const Model& model, const std::vector<TokenId>& ends,
                              const std::string& start, const GeneratedText& text) {
  if (text.tokens.empty()) return {};
  const bool ended = std::binary_search(ends.begin(), ends.end(), text.tokens.back());
  const auto words = std::span(text.tokens).first(text.tokens.size() - (ended ? 1 : 0));
  const std::string question = start + model.tokenizer->decode(words);
  const std::string& mark = model.chat.end_of_user_turn();
  const size_t at = mark.empty() ? std::string::npos : question.find(mark);
  if (at != std::string::npos) return question.substr(0, at);
  return ended ? question : std::string();
}

}  // namespace

std::vector<std::string> write_questions(const DistillConfig& config, uint64_t seed,
                                         const Model& model, TargetModel& target) {
  const Random random(seed);
  std::vector<std::string> starts;
  std::vector<GenerateRequest> requests;
  for (int64_t i = 0; i < config.self_prompts; ++i) {
    starts.push_back(starter(i, random));
    GenerateRequest request;
    request.prompt = model.chat.encode_open_user_turn(*model.tokenizer, starts.back());
    request.random = random.child(static_cast<uint64_t>(i));
    request.max_new_tokens = static_cast<int32_t>(config.question_tokens);
    requests.push_back(std::move(request));
  }
  std::vector<std::string> questions(requests.size());
  Progress progress(model.progress, "write questions", "questions", config.self_prompts);
  int64_t done = 0;
  const std::vector<TokenId> ends = ends_of_question(model);
  const GenerateFunction generate =
      make_generate_function(target, config.question_sampling, ends, 0);
  generate(requests, [&](size_t i, const GeneratedText& text) {
    questions[i] = finished_question(model, ends, starts[i], text);
    progress.update(++done);
    return true;
  });
  progress.finish();
  return questions;
}

}  // namespace medusa
