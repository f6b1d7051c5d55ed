#include "tools/chat_choice.h"

namespace medusa {

ChatTemplate open_chat_template(const BackboneSection& config, const Tokenizer& tokenizer) {
  if (config.chat_template) return ChatTemplate::by_name(*config.chat_template);
  return ChatTemplate::of_model(tokenizer);
}

}  // namespace medusa
