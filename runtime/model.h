// A model ready to use: weights on their device, tokenizer, chat template.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backbone/llama.h"
#include "data/chat/chat_template.h"
#include "data/tokenizer/tokenizer.h"
#include "infer/backbone_target.h"
#include "runtime/model_options.h"
#include "runtime/turns_of_callers.h"

namespace medusa {

/// Copies share the parts.
///
/// Thread safety: const calls of Model itself may run at the same time. Passes of llama may not:
/// Generators take turns by themselves, other callers hold `turns`.
struct Model {
  /// Opens tokenizer and template first (cheap, and where most mistakes show), then reads the
  /// weights. Changes nothing outside the model, the process's number of threads included.
  /// @param path  a .gguf file, or a folder with config.json and .safetensors.
  /// @throws UserError
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});

  std::filesystem::path path{};
  std::shared_ptr<const Tokenizer> tokenizer{};
  ChatTemplate chat{};  // without a name where the options need none
  std::shared_ptr<Llama> llama{};
  std::vector<TokenId> eos{};        // whatever ends an answer
  int64_t context = 0;               // most tokens of a sequence
  std::optional<double> cache_mb{};  // most megabytes (10^6 bytes) of a cache; none: whole contexts
  ProgressFunction progress{};       // as the options say
  std::shared_ptr<TurnsOfCallers> turns = std::make_shared<TurnsOfCallers>();

  /// The chat template around one conversation, ready for the answer.
  /// @throws UserError  a message is not UTF-8; the model's template refuses the conversation; the
  ///                    model was loaded without a template.
  std::vector<TokenId> encode(const std::vector<ChatMessage>& messages) const;

  /// A target for so many sequences at the same time, within cache_mb.
  /// @param rows        most of one sequence; at most the model's context.
  /// @throws UserError  the cache does not hold one such sequence.
  BackboneTarget open_target(int32_t num_sequences, int64_t rows) const;
};

/// @throws UserError  nothing has this name.
void expect_model(const std::filesystem::path& path);

/// @param who  wants it, for the message: "Generator".
/// @throws UserError  no model was loaded into it.
void expect_loaded(const Model& model, const char* who);

/// @param who  wants to write a conversation, for the message: "Distiller".
/// @throws UserError  the model was loaded without a chat template.
void expect_chat_template(const Model& model, const char* who);

/// @param option  that names the file or folder, for the message: "CalibratorOptions::heads".
/// @throws UserError  it is empty.
void expect_named(const std::filesystem::path& place, const char* option);

/// The template that the options name, else the model's own.
/// @throws UserError  as ChatTemplate says.
ChatTemplate open_chat_template(const ModelOptions& options, const Tokenizer& tokenizer);

/// Threads that run its passes.
int num_threads(const Llama& llama);

/// "Intel(R) Xeon(R) Processor, 2 threads, bfloat16, AMX bfloat16 tiles": for reports and tree
/// files.
std::string machine_text(const Llama& llama);

}  // namespace medusa
