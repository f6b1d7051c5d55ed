// Trained heads as a folder: heads.safetensors, manifest.yaml (what HeadsManifest says),
// settings.yaml (of the run), and DONE, written last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "heads/medusa_heads.h"

namespace medusa {

/// How well one head drafts, over the validation positions that have a label for it. A label that
/// a truncated output cannot draft counts as a miss (and not in the loss).
struct HeadQuality {
  double loss = 0;                          // mean cross-entropy, nats
  double top_1 = 0, top_5 = 0, top_10 = 0;  // shares of positions, 0 to 1
};

/// A dataset that heads were trained on, and by which seed and fraction samples of it were kept
/// out.
struct LearnedText {
  std::string dataset;  // fingerprint
  std::optional<uint64_t> seed;
  std::optional<double> validation_fraction;
};

/// What the heads say of themselves.
struct HeadsManifest {
  HeadsConfig config;
  int64_t hidden_size = 0;                  // H
  int64_t vocab_size = 0;                   // V
  std::string fingerprint;                  // of config and tensors; tree files name it
  std::string backbone;                     // fingerprint
  std::string dataset;                      // fingerprint; empty: not known
  std::vector<std::string> mixed_datasets;  // fingerprint, weight and folder of each, if several
  std::vector<LearnedText> learned_before;  // by the heads that these began as
  std::string source;                       // where imported heads come from; empty: trained here
  std::string training;                     // fingerprint of all that decided it; empty: not known
  std::optional<uint64_t> seed;             // of the samples that were kept out; none: not known
  std::optional<double> validation_fraction;  // share of samples that was kept out
  int64_t step = 0;                           // optimizer steps behind these heads
  int64_t num_validation = 0;                 // positions the qualities were measured on
  std::vector<HeadQuality> quality;           // [K]; empty: not validated
  std::string settings;                       // resolved settings of the run, YAML text
};

/// Writes the folder beside its place and renames it: afterwards the old heads or the new ones are
/// there. Sets manifest.fingerprint.
/// @param dtype  of the stored tensors: what training computed in, so that nothing validated is
///               rounded once more.
/// @throws UserError  the place cannot be written or the disk is full; what stood there stays.
void save_heads(const std::filesystem::path& folder, const MedusaHeads& heads, at::ScalarType dtype,
                HeadsManifest& manifest);

struct LoadedHeads {
  MedusaHeads heads;                  // float32 masters on the backbone's device
  at::ScalarType dtype = at::kFloat;  // of the stored tensors
  HeadsManifest manifest;
};

/// @throws UserError  no DONE file; damaged or of another version; trained on another backbone; a
///                    tensor is missing, left over, or of another shape or content than the
///                    manifest says.
LoadedHeads load_heads(const std::filesystem::path& folder, const Weights& backbone);

/// All that these heads have learned from: their own text, each dataset that it was mixed of, and
/// what was learned before.
std::vector<LearnedText> learned_texts(const HeadsManifest& manifest);

/// @param backbone  a fingerprint.
/// @throws UserError  the heads were trained on another one.
void check_trained_on(const std::string& backbone, const std::filesystem::path& folder,
                      const HeadsManifest& manifest);

/// Only what the heads say of themselves; the same errors, but for those about the backbone and the
/// tensors.
HeadsManifest read_heads_manifest(const std::filesystem::path& folder);

}  // namespace medusa
