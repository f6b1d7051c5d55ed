// The model that a server answers with, and how it drafts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/chat/chat_template.h"
#include "data/tokenizer/tokenizer.h"
#include "infer/decoder.h"
#include "infer/drafters/shared_texts.h"
#include "infer/infer_config.h"

namespace medusa {

/// Kept by reference: tokenizer, chat and decoder outlive the server.
struct ServedModel {
  std::string name;  // that clients ask for
  const Tokenizer& tokenizer;
  const ChatTemplate& chat;
  std::vector<TokenId> eos;   // whatever ends an answer
  int64_t context = 0;        // tokens of prompt and answer together
  int64_t num_sequences = 1;  // that run at the same time
  int64_t cache_tokens = 0;   // of all sequences together that the KV cache holds
  Decoder& decoder;           // idle; only the scheduler's thread uses it from now on
  InferConfig settings;       // of requests that do not say otherwise
  std::map<DrafterKind, DrafterFactory> drafters;  // that a request may choose; has
                                                   // settings.drafter
  /// Those of them, and forms of them, that look into nobody's answers: for requests whose client
  /// sees rejected drafts, or whose rule lets drafts change the text.
  std::map<DrafterKind, DrafterFactory> unshared_drafters;
  SharedTexts* shared = nullptr;  // gets answers when they end; null: they are not kept
  bool has_chat = true;  // false: the model brings no chat template, and conversations are refused
};

}  // namespace medusa
