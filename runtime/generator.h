// Text in, text out: a model with a drafter and a rule, ready to answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "infer/infer_config.h"
#include "runtime/answer.h"
#include "runtime/draft_folder.h"
#include "runtime/model.h"

namespace medusa {

/// Drafter `none`: heads have to be named first.
InferConfig plain_decoding();

/// Messages call these by the names of the settings: generate.rule is `infer.rule`.
struct GeneratorOptions {
  InferConfig infer = plain_decoding();  // drafter, rule, sampling, max_new_tokens
  DraftFiles files{};                    // what the drafter is made from
  DrafterFactory own_drafter{};     // makes the drafter of each text, in place of infer.drafter
  std::vector<std::string> stop{};  // texts that end an answer; they are not part of it
  int32_t sequences = 1;            // most texts that are decoded at the same time
  int64_t logprobs = 0;             // most probable tokens to keep for each token
  uint64_t seed = 1;                // of each text's sampling
};

/// Thread safety: yes. Calls of all generators of one model take turns. A call that throws leaves
/// the generator as before it.
class Generator {
 public:
  /// Gets a text piece by piece as it arises; false ends it. It must not call the model's
  /// generators.
  using Show = std::function<bool(std::string_view)>;
  /// Gets the texts of several prompts piece by piece, with the index of the prompt.
  using ShowEach = std::function<bool(size_t, std::string_view)>;

  /// Loads what the drafter needs. Some drafters time steps, for a second or so.
  /// @param model  of which a copy is kept.
  /// @throws UserError  options that do not go together; a part is missing, damaged, or does not
  ///                    fit the model or the others; a cache without room.
  Generator(const Model& model, GeneratorOptions options);
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  /// The answer to a user's message.
  /// @throws UserError  here and below: a text that is not UTF-8, a prompt that the context does
  ///                    not hold, a conversation that the chat template refuses, a call from a
  ///                    callback. Then nothing was decoded.
  Answer generate(std::string_view prompt, const Show& show = {});

  /// Answers several prompts, in their order, as many at the same time as the options say. Each is
  /// the one that would be given alone where rows are independent (ARCHITECTURE.md): under the
  /// rules greedy and match with every drafter, under others with one whose trees do not depend on
  /// the sequences beside them.
  std::vector<Answer> generate(const std::vector<std::string>& prompts, const ShowEach& show = {});

  /// The next answer of a conversation, which ends with a user's message.
  Answer chat(const std::vector<ChatMessage>& conversation, const Show& show = {});

  /// Answers prompts that are tokens already (Model::encode()), each with a seed of its own and,
  /// where it brings them, with its own drafter, rule, sampling, length and stop texts. They are
  /// decoded at the same time all the same, and each is the one that would be given alone. A
  /// drafter whose parts are not loaded yet has them loaded, from the files that the options name,
  /// and kept.
  /// @throws UserError  also: settings of one text do not go together, or need a part that is not
  ///                    there. The message begins with the request: "requests[2]".
  std::vector<Answer> answer(const std::vector<AnswerRequest>& requests, const ShowEach& show = {});

  /// Says whether the rule of the options promises the model's own text, or its distribution.
  bool lossless() const;

  /// Fingerprint of the heads that the drafter of the options uses; empty: none.
  const std::string& heads() const;

  /// Tells what was prepared on a GPU so far, a line each for people; empty: nothing.
  std::string report() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace medusa
