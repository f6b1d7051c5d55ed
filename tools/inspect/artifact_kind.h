// What a file or folder is, told from its content: names are the user's to choose.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace medusa {

enum class ArtifactKind {
  Dataset,      // a folder of shards
  Shard,        // one HDF5 file of a dataset
  Heads,        // a folder of trained heads
  Checkpoint,   // a folder of an unfinished training
  HuggingFace,  // a model folder with config.json
  Folder,       // a folder that holds some of the others: a run
  Gguf,
  Safetensors,
  Tree,          // a choice tree, YAML
  TextStore,     // what the retrieval drafter looks up
  DraftModel,    // a model folder that make-draft wrote
  Eagle3Draft,   // a folder of an EAGLE-3 draft, published or imported
  LayerChoice,   // layers that self-speculation skips, JSON
  Metrics,       // training reports, one JSON object per line
  Events,        // the same for TensorBoard
  Comparison,    // of methods, JSON
  Bench,         // the tables of a bench, JSON
  BenchAnswers,  // every answer of a bench, one JSON object per line
  Profile,       // the parts of a step, JSON
  Prompts,       // or questions: JSON Lines, or a list
  Settings,      // of a run, YAML
  Page,          // of pictures, HTML
  Part,          // a file that belongs to one of the folders (inspectors.h)
};

/// For people: "dataset folder".
std::string kind_name(ArtifactKind kind);

/// Looks at the first bytes of a file or at what lies in a folder; does not check the rest.
/// @throws UserError  nothing is there, or it is of no kind that we know.
ArtifactKind recognize_artifact(const std::filesystem::path& path);

/// The same; nothing: it is of no kind that we know, or nothing is there.
std::optional<ArtifactKind> find_kind(const std::filesystem::path& path);

/// What the folder is by the files that mark it, a run folder left aside; nothing: it has none.
std::optional<ArtifactKind> marked_folder(const std::filesystem::path& folder);

}  // namespace medusa
