#include "tools/self_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/output.h"
#include "base/stderr_progress.h"
#include "data/prompts.h"
#include "data/question_filter.h"
#include "data/starter_topics.h"
#include "tools/generation.h"

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

/// Entry i is what became of starter i.
std::vector<std::string> write_questions(const RunConfig& config, const Model& model,
                                         TargetModel& target) {
  const DistillSection& settings = config.distill;
  const Random random(config.seed);
  std::vector<std::string> starts;
  std::vector<GenerateRequest> requests;
  for (int64_t i = 0; i < settings.self_prompts; ++i) {
    starts.push_back(starter(i, random));
    GenerateRequest request;
    request.prompt = model.chat.encode_open_user_turn(*model.tokenizer, starts.back());
    request.random = random.child(static_cast<uint64_t>(i));
    request.max_new_tokens = static_cast<int32_t>(settings.question_tokens);
    requests.push_back(std::move(request));
  }
  std::vector<std::string> questions(requests.size());
  Progress progress(stderr_progress(), "write questions", "questions", settings.self_prompts);
  int64_t done = 0;
  const std::vector<TokenId> ends = ends_of_question(model);
  const GenerateFunction generate =
      make_generate_function(target, settings.question_sampling, ends, 0);
  generate(requests, [&](size_t i, const GeneratedText& text) {
    questions[i] = finished_question(model, ends, starts[i], text);
    progress.update(++done);
    return true;
  });
  progress.finish();
  return questions;
}

std::vector<std::string> keep_good(const std::vector<std::string>& questions) {
  QuestionFilter filter;
  std::vector<std::string> kept;
  for (const std::string& question : questions)
    if (filter.add(question) == QuestionFilter::Verdict::Kept) kept.push_back(question);
  const QuestionCounts& counts = filter.counts();
  print_note(
      "{} questions kept; dropped: {} unfinished or empty, {} degenerate, {} near-duplicates\n",
      counts.kept, counts.empty, counts.degenerate, counts.duplicate);
  return kept;
}

void save(const std::filesystem::path& file, const std::vector<std::string>& questions) {
  std::string lines;
  for (size_t i = 0; i < questions.size(); ++i) {
    const nlohmann::json line{{"id", fmt::format("self/{}", i)}, {"text", questions[i]}};
    lines += json_text(line) + "\n";
  }
  make_folder(file.parent_path());
  write_file(file, lines);
}

}  // namespace

PromptSet self_prompts(const RunConfig& config, const Model& model, TargetModel& target) {
  const std::filesystem::path file = config.questions_file();
  if (!std::filesystem::exists(file)) {
    const std::vector<std::string> kept = keep_good(write_questions(config, model, target));
    if (interrupted()) return {};
    if (kept.empty())
      throw UserError(
          fmt::format("distill: the model finished none of {} questions, expected most of them; is "
                      "it a chat model with this template ({})? "
                      "Give prompts instead: distill.prompts",
                      config.distill.self_prompts, model.chat.name()));
    save(file, kept);
  }
  return read_prompts(file);
}

}  // namespace medusa
