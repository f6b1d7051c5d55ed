// Where the parts of drafters lie.
#pragma once

#include <filesystem>

namespace medusa {

/// The files of drafters: each is read by those that need it (infer/drafter_spec.h), and may be
/// empty for others.
struct DraftFiles {
  std::filesystem::path heads{};  // folder of trained heads
  std::filesystem::path tree{};   // the choice tree
  std::filesystem::path store{};  // texts to look up; retrieval.store of the settings goes first
  std::filesystem::path draft_model{};  // folder or .gguf file; draft_model.model goes first
  std::filesystem::path layers{};       // what may be skipped; layer_skip.skip goes first
  std::filesystem::path eagle3{};       // folder of an imported draft; eagle3.draft goes first
};

}  // namespace medusa
