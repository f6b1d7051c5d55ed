// Which chat template a run uses.
#pragma once

#include "data/chat/chat_template.h"
#include "tools/run_config.h"

namespace medusa {

/// The one that the settings name, else the model's own.
/// @throws UserError  as ChatTemplate says.
inline ChatTemplate open_chat_template(const BackboneSection& config, const Tokenizer& tokenizer) {
  if (config.chat_template) return ChatTemplate::by_name(*config.chat_template);
  return ChatTemplate::of_model(tokenizer);
}

}  // namespace medusa
