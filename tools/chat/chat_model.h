// The model of a chat: answers a conversation, step by step, with a drafter that may be changed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/decoder.h"
#include "runtime/drafting.h"
#include "runtime/model.h"
#include "tools/bench/rounds.h"
#include "tools/run/run_config.h"

namespace medusa {

struct ChatAnswer {
  std::string text;  // special tokens and stop strings left out
  DecodeStats stats;
  DecodeTimes times;
  int64_t prompt_tokens = 0;
  bool was_stopped = false;  // by a signal, before its end
};

/// Hears of an answer while it grows.
struct AnswerWatcher {
  /// @param drafter  of its last token; nothing: the model's own, or unwatched.
  std::function<void(std::string_view piece, std::optional<DrafterKind> drafter)> show;
  std::function<void(const DecodeStats&)> end_step;
};

/// Thread safety: none.
class ChatModel {
 public:
  /// Loads the model and what the drafter needs.
  /// @param infer  names the drafter; config says where its parts lie.
  /// @param watches_drafts  show() is told the drafter; a GPU's own loop does not run then.
  /// @throws UserError
  ChatModel(RunConfig config, const InferConfig& infer, bool watches_drafts);

  const InferConfig& settings() const { return method_.settings; }
  bool is_lossless() const { return method_.lossless; }
  int64_t context() const { return model_.context; }

  /// From now on.
  /// @throws UserError  the settings do not go together, or a part of the drafter is missing;
  ///                    everything is as it was.
  void change(InferConfig infer);

  /// Answers the last message. What the KV cache still holds of the conversation is not computed
  /// again. SIGINT or SIGTERM stops it within a step.
  /// @throws UserError  the conversation leaves no room in the context.
  ChatAnswer answer(const std::vector<ChatMessage>& messages, uint64_t seed,
                    const AnswerWatcher& watcher);

 private:
  std::vector<TokenId> encode(const std::vector<ChatMessage>& messages) const;

  RunConfig config_;
  bool watches_drafts_;
  Model model_;
  BackboneTarget target_;
  std::shared_ptr<const StepCost> cost_;  // of rows, once a drafter needed it
  std::unique_ptr<LoadedDrafting> drafting_;
  Method method_;  // of these parts
};

}  // namespace medusa
