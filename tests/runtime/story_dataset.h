// Stories as a dataset of the tiny model, and untrained heads for it.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset/dataset_writer.h"
#include "heads/heads_checkpoint.h"
#include "runtime/model.h"

namespace medusa::fixtures {

/// Six samples without states, each with an answer of ten tokens or more.
/// @param backbone  fingerprint of the model that it says it was written by.
inline void write_story_dataset(const std::filesystem::path& folder, const Model& model,
                                const std::string& backbone) {
  DatasetInfo info;
  info.backbone = backbone;
  info.tokenizer = model.tokenizer->fingerprint();
  info.vocab_size = model.llama->config().vocab_size;
  constexpr const char* kStories[] = {
      "Once upon a time there was a little girl. She had a red ball and a big dog.",
      "Tom went to the park with his mom. They saw a bird and a cat in a tree.",
      "The sun was hot. Lily wanted to play in the water with her friend Sam.",
      "One day a boy found a box. In the box was a toy car. He was very happy.",
      "The big dog ran to the ball. The ball was red. The dog was happy to play.",
      "Mom said it was time for bed. Tim was sad, but he went to sleep with his bear."};
  DatasetWriter writer(folder, info, std::ssize(kStories), 16);
  for (int64_t i = 0; i < std::ssize(kStories); ++i)
    writer.add(i,
               {"story/" + std::to_string(i), model.tokenizer->encode(kStories[i], false), 2, {}});
}

/// @returns  their fingerprint.
inline std::string write_story_heads(const std::filesystem::path& folder, const Model& model) {
  HeadsManifest manifest;
  manifest.backbone = model.llama->weights().fingerprint;
  HeadsConfig heads;
  heads.num_heads = 2;
  heads.output = HeadOutput::Shared;
  save_heads(folder, make_heads(heads, model.llama->weights(), {}, 1), at::kFloat, manifest);
  return manifest.fingerprint;
}

}  // namespace medusa::fixtures
