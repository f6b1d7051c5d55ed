#include "tools/chat/chat_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/tokenizer/text_stream.h"
#include "tools/run/drafter_choice.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

/// Turns the tokens of one answer into text, and says who proposed them.
class AnswerText {
 public:
  AnswerText(const Tokenizer& tokenizer, const std::vector<std::string>& stop, DrafterKind drafter,
             const AnswerWatcher& watcher)
      : shown_(tokenizer, stop), drafter_(drafter), watcher_(watcher) {}

  void watch(const StepView& step) {
    drafters_.clear();
    next_ = 0;
    for (const int32_t node : step.accepted.path)
      drafters_.push_back(step.tree.drafter_of(node, drafter_));
  }

  bool take(TokenId token) {
    std::optional<DrafterKind> drafter;
    if (next_ < drafters_.size()) drafter = drafters_[next_++];
    show(shown_.add(token), drafter);
    return !shown_.stopped();
  }

  std::string finish() {
    show(shown_.finish(), std::nullopt);
    return std::move(text_);
  }

 private:
  void show(std::string_view piece, std::optional<DrafterKind> drafter) {
    text_ += piece;
    watcher_.show(piece, drafter);
  }

  TextUntilStop shown_;
  DrafterKind drafter_;  // who proposed the nodes of a tree that does not say
  const AnswerWatcher& watcher_;
  std::vector<DrafterKind> drafters_;  // of the step's accepted run
  size_t next_ = 0;
  std::string text_;
};

/// Runs one request to its end, or to a signal.
DecodeStats run_request(Decoder& decoder, DecodeRequest request, const AnswerWatcher& watcher,
                        bool& was_stopped) {
  struct CancelAll {  // also when something throws
    Decoder& decoder;
    ~CancelAll() { decoder.cancel_all(); }
  } const cancel_all{decoder};
  const RequestId id = decoder.submit(std::move(request));
  for (;;) {
    for (const FinishedRequest& ended : decoder.step()) {
      if (ended.error) std::rethrow_exception(ended.error);
      return ended.stats;
    }
    watcher.end_step(*decoder.stats(id));
    was_stopped = interrupted();
    if (was_stopped) return *decoder.cancel(id);
  }
}

}  // namespace

ChatModel::ChatModel(RunConfig config, const InferConfig& infer, bool watches_drafts)
    : config_(std::move(config)),
      watches_drafts_(watches_drafts),
      model_(open_model(config_.backbone)),
      target_(model_.open_target(1, model_.context)) {
  change(infer);
}

void ChatModel::change(InferConfig infer) {
  infer.validate();
  if (watches_drafts_) infer.graphs = false;
  const bool is_other = drafting_ == nullptr || infer.drafter != settings().drafter;
  std::unique_ptr<LoadedDrafting> loaded;
  if (is_other) {
    check_drafting(config_, infer);
    loaded = std::make_unique<LoadedDrafting>(
        load_drafting(config_.draft_files(), infer, model_, target_, cost_));
    if (loaded->cost) cost_ = loaded->cost;
  }
  const LoadedDrafting& parts = is_other ? *loaded : *drafting_;
  method_ = make_method(infer, parts.parts(), target_);  // the old one ends before its parts
  if (is_other) drafting_ = std::move(loaded);
}

std::vector<TokenId> ChatModel::encode(const std::vector<ChatMessage>& messages) const {
  std::vector<TokenId> prompt = model_.encode(messages);
  if (std::ssize(prompt) < model_.context) return prompt;
  throw UserError(fmt::format(
      "the conversation: has {} tokens, expected fewer than the context of {}; take messages back "
      "with /undo, or start with a larger --context if the model was trained for more",
      prompt.size(), model_.context));
}

ChatAnswer ChatModel::answer(const std::vector<ChatMessage>& messages, uint64_t seed,
                             const AnswerWatcher& watcher) {
  AnswerText text(*model_.tokenizer, config_.generate.stop, settings().drafter, watcher);
  DecodeRequest request;
  request.prompt = encode(messages);
  request.limits = {.max_new_tokens = settings().max_new_tokens, .eos = model_.eos};
  request.random = Random(seed);
  request.emit = [&text](const EmittedToken& token) { return text.take(token.id); };
  if (watches_drafts_) request.watch = [&text](const StepView& step) { text.watch(step); };
  ChatAnswer out;
  out.prompt_tokens = std::ssize(request.prompt);
  const DecodeTimes before = method_.decoder->times();
  out.stats = run_request(*method_.decoder, std::move(request), watcher, out.was_stopped);
  out.times = method_.decoder->times().since(before);
  out.text = text.finish();
  return out;
}

}  // namespace medusa
