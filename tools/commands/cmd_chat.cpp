// medusa chat: a conversation with the model, in the terminal or through a pipe.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "base/utf8.h"
#include "tools/chat/chat.h"
#include "tools/commands/command.h"
#include "tools/commands/options.h"
#include "tools/run/drafter_choice.h"

namespace medusa {
namespace {

void run_chat(const CommonOptions& common, ChatOptions options) {
  const RunConfig config = read_run_config(common);
  const InferConfig infer = conversation_decoding(config, same_run_commands(common));
  if (!is_valid_utf8(options.system))
    throw UserError(
        "--system: is not UTF-8, expected text in it; set the terminal to UTF-8, or leave it out");
  options.seed = config.seed;
  options.json = common.json;
  const auto abilities = common.json ? ScreenAbilities() : ScreenAbilities::of_stdout();
  const std::unique_ptr<MessageSource> source = open_message_source();
  ChatModel model(config, infer, abilities.has_colors);
  if (source->is_person()) {
    outlive_sigint();
    print_note("{}, drafter {}; /help lists the commands, Ctrl-D leaves\n",
               model_name(config.backbone.model), enum_name(infer.drafter));
  }
  Chat(model, options, abilities).run(*source);
}

}  // namespace

Command chat_command() {
  return {.name = "chat",
          .summary = "talk with the model in the terminal, or through a pipe",
          .details =
              "A line is a message; several stand between lines of \"\"\". /help lists what "
              "else can be typed.",
          .sections = {"backbone", "generate"},
          .settings = {"--drafter", "--rule", "--heads", "--tree", "--temperature", "--top-p",
                       "--top-k", "--max-tokens", "--stop", "--seed", "--device", "--dtype",
                       "--threads", "--context", "--cache-mb"},
          .says_run = false,
          .examples = {"chat model.gguf --temperature 0.7 --max-tokens 1000",
                       "chat model.gguf --system \"You are terse.\" --drafter none"},
          .attach = [](Options& added, const CommonOptions& common) -> std::function<void()> {
            const auto options = std::make_shared<ChatOptions>();
            added.group("Conversation");
            added.value("--system", options->system, "TEXT",
                        "the system message; else the chat template's own, if it has one");
            return [options, &common] { run_chat(common, *options); };
          }};
}

}  // namespace medusa
