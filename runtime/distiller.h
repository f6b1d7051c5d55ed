// Self-distillation: the model answers prompts, and what it says becomes a dataset. So do texts
// that are there already, with the states that the model has at their tokens. Paper: Medusa
// (arXiv:2401.10774) §2.3.2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/dataset_writer.h"
#include "data/prompts.h"
#include "data/self_distill.h"
#include "data/written_texts.h"
#include "runtime/distill_config.h"
#include "runtime/model.h"

namespace medusa {

/// Messages call these by the names of the settings: distill.batch is `config.batch`.
struct DistillerOptions {
  DistillConfig config{};
  std::filesystem::path dataset{};  // folder of the result; a dataset found here is continued
  bool fresh = false;  // its shards are removed instead, once it is certain that others come;
                       // self-written questions of other settings are written anew
  std::function<void()> before_removal{};  // called right before that; empty: nothing
  std::filesystem::path questions{};  // file of those that self_prompts() writes; else not read
  std::optional<DatasetPart> part{};  // of several processes (--shard); none: the whole dataset
  uint64_t seed = 1;                  // of sampling
  NoteFunction note{};                // empty: what became of self-written questions is unsaid

  /// Costs nothing: for before a model is loaded.
  /// @throws UserError  no dataset is named; an option is outside its range, or a limit that no
  ///                    part can count alone.
  void validate() const;
};

/// Thread safety: yes. Calls of generators, calibrators and distillers of one model take turns.
class Distiller {
 public:
  /// Takes a KV cache for config.batch sequences.
  /// @param model  of which a copy is kept; its progress function is told how far it is, and must
  ///               not call the model's generators.
  /// @throws UserError  no model is loaded; as DistillerOptions::validate(); a cache without room.
  Distiller(const Model& model, DistillerOptions options);

  /// Questions that a chat model asks itself: read from options.questions if that is there, else
  /// written by the model, those that teach nothing new left out (data/question_filter.h), and
  /// kept there. What becomes of each depends on the seed alone. With `fresh` those that this wrote
  /// with other settings are written anew; others, also those that somebody has changed, stay.
  /// @returns  empty when interrupted.
  /// @throws UserError  no file is named; it was written with other settings; none of the questions
  ///                    was finished.
  PromptSet self_prompts();

  /// Answers the prompts. Killed and started again with the same ones, it continues, and ends with
  /// the same bytes as an unbroken run.
  /// @throws UserError  no prompt, or none that leaves room for an answer; one that is not UTF-8 or
  ///                    that the chat template refuses; a folder that holds another dataset.
  DistillReport run(std::span<const Prompt> prompts);

  /// Reads texts instead of writing some: documents in pieces of config.text_tokens, of
  /// conversations the answers. Nothing is generated; the rest is as in run().
  /// @returns  too_long: answers that do not fit, are empty or not as the chat template writes
  /// them.
  /// @throws UserError  no text, or none that can be learnt from; a folder that holds another
  ///                    dataset; a part (--shard).
  DistillReport read(std::span<const WrittenText> texts);

 private:
  std::string computed_text() const;
  std::string question_text() const;
  DatasetWriter open_writer(const std::string& prompts, const std::string& sampling,
                            int64_t count) const;

  Model model_;
  DistillerOptions options_;
  int64_t rows_;  // most tokens of a prompt and its answer
  BackboneTarget target_;
};

}  // namespace medusa
