// What the heads look like. Sizes that the backbone decides (H, V) are never settings.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/fields.h"

namespace medusa {

/// What a head reads.
enum class HeadInput {
  Hidden,      // the backbone's state, as in the paper (§2.1.1)
  Root,        // that state and the embedding of the root token, which is known when the heads run
  Sequential,  // and those of the tokens drafted between the root and its own: Hydra (2402.05109)
  Prefix,      // as Root, with a prefix layer between the backbone's states and the heads
  PrefixSequential,  // as Sequential, with that layer: Hydra++ (2402.05109)
};

/// Says whether the heads read what a layer over the answer so far makes of the states
/// (prefix_layer.h).
inline bool has_prefix(HeadInput input) {
  return input == HeadInput::Prefix || input == HeadInput::PrefixSequential;
}
/// Says whether a head reads the tokens drafted between the root and its own.
inline bool reads_paths(HeadInput input) {
  return input == HeadInput::Sequential || input == HeadInput::PrefixSequential;
}

/// Tokens whose embeddings head k reads: the root, then the tokens after it.
inline int64_t tokens_read(HeadInput input, int64_t head) {
  if (reads_paths(input)) return head + 1;
  return input == HeadInput::Hidden ? 0 : 1;
}

/// What turns a head's state into logits.
enum class HeadOutput {
  Shared,            // the backbone's LM head, frozen
  Own,               // a trained copy of the LM head for each head, as in the paper
  TruncatedShared,   // the LM head's rows of the dataset's most frequent tokens, frozen
  TruncatedOwn,      // a trained copy of these rows for each head
  LowRank,           // for each head two trained factors whose product stands for the LM head
  TruncatedLowRank,  // the same for these rows
};

/// What a prefix layer is before training.
enum class HeadStart {
  Random,     // nothing: heads read the backbone's states as they are
  LastLayer,  // the backbone's last layer once more (prefix_layer.h)
};

template <>
struct EnumNames<HeadStart> {
  static constexpr std::array<std::pair<const char*, HeadStart>, 2> values{
      {{"random", HeadStart::Random}, {"last_layer", HeadStart::LastLayer}}};
};

template <>
struct EnumNames<HeadInput> {
  static constexpr std::array<std::pair<const char*, HeadInput>, 5> values{
      {{"hidden", HeadInput::Hidden},
       {"root", HeadInput::Root},
       {"sequential", HeadInput::Sequential},
       {"prefix", HeadInput::Prefix},
       {"prefix_sequential", HeadInput::PrefixSequential}}};
};

template <>
struct EnumNames<HeadOutput> {
  static constexpr std::array<std::pair<const char*, HeadOutput>, 6> values{
      {{"shared", HeadOutput::Shared},
       {"own", HeadOutput::Own},
       {"truncated_shared", HeadOutput::TruncatedShared},
       {"truncated_own", HeadOutput::TruncatedOwn},
       {"low_rank", HeadOutput::LowRank},
       {"truncated_low_rank", HeadOutput::TruncatedLowRank}}};
};

inline bool is_truncated(HeadOutput output) {
  return output == HeadOutput::TruncatedShared || output == HeadOutput::TruncatedOwn ||
         output == HeadOutput::TruncatedLowRank;
}
inline bool is_low_rank(HeadOutput output) {
  return output == HeadOutput::LowRank || output == HeadOutput::TruncatedLowRank;
}
/// Says whether each head has an output of its own, which is trained.
inline bool is_own(HeadOutput output) {
  return output == HeadOutput::Own || output == HeadOutput::TruncatedOwn || is_low_rank(output);
}

struct HeadsConfig {
  int64_t num_heads = 4;        // K
  int64_t layers_per_head = 1;  // residual layers, each with parameters of its own
  HeadInput input = HeadInput::Root;
  HeadOutput output = HeadOutput::TruncatedShared;
  int64_t output_size = 8192;  // V_t, tokens a truncated output can draft; ignored by the others
  int64_t output_rank = 64;    // r, inner size of a low-rank output; ignored by the others
  HeadStart start = HeadStart::Random;  // of the prefix layer; Random where there is none
  int64_t correction_rank = 0;  // R, inner size of the correction (heads/correction.h); 0: none

  template <typename Fields>
  void fields(Fields& f) {
    f("num_heads", num_heads, "Medusa heads; head k drafts the token k + 1 places after the root",
      between<int64_t>(1, 16));
    f("layers_per_head", layers_per_head, "residual layers of each head", between<int64_t>(1, 8));
    f("input", input,
      "what a head reads: the hidden state, also the root token, or also the tokens drafted "
      "before; prefix: behind one more layer over the answer so far");
    f("start", start, "what a prefix layer begins as: random, or the backbone's last layer")
        .decides_if(has_prefix(input));
    f("output", output,
      "what gives the logits: the LM head, a trained copy or two trained factors, whole or "
      "truncated");
    f("output_size", output_size, "most frequent tokens that a truncated output keeps",
      at_least<int64_t>(1))
        .decides_if(is_truncated(output));
    f("output_rank", output_rank, "inner size of a low-rank output, a multiple of 32",
      between<int64_t>(32, 1024))
        .decides_if(is_low_rank(output));
    f("correction_rank", correction_rank,
      "inner size, a multiple of 32, of what corrects heads 1, 2, … by the token drafted just "
      "before; 0: none",
      between<int64_t>(0, 1024));
  }
  /// @throws UserError  a rank that is no multiple of 32; a start for a layer that is not there; a
  ///                    correction of heads that read the drafts anyway, or of a single head.
  void validate() const;

  friend bool operator==(const HeadsConfig&, const HeadsConfig&) = default;
};

/// Says whether a head's drafts depend on the tokens drafted between the root and its own: it reads
/// them, or is corrected by the last of them.
inline bool depends_on_paths(const HeadsConfig& config) {
  return reads_paths(config.input) || config.correction_rank > 0;
}

/// Tokens that have to be known for head k's drafts: the root, which is always named, and those
/// after it that it depends on.
inline int64_t tokens_before(const HeadsConfig& config, int64_t head) {
  return depends_on_paths(config) ? head + 1 : 1;
}

}  // namespace medusa
