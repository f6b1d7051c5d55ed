// What retrieval drafting looks up: texts as token ids with their sorted suffixes, in one file that
// is mapped, not read. He et al., "REST: Retrieval-Based Speculative Decoding" (arXiv:2311.08252)
// §3.1.
//
// The file is a safetensors container: `tokens`, int32, the texts one after the other with -1 after
// each; `suffixes`, int32, where in `tokens` each suffix of a text begins, in the order of what
// they hold. Its metadata are the fields of TextStoreInfo, format, version, and the SHA-256 of all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/formats/safetensors_file.h"
#include "base/token.h"

namespace medusa {

inline constexpr const char* kTextStoreFormat = "medusa-text-store";

/// What a store says of itself.
struct TextStoreInfo {
  std::string tokenizer;  // fingerprint: whose ids the texts are
  std::string dataset;    // fingerprint: where the texts come from
  std::string samples;    // which of them: "training" or "all"
  int64_t num_texts = 0;
};

/// Gathers texts, sorts their suffixes and writes the file.
class TextStoreWriter {
 public:
  void add(std::span<const TokenId> text);
  int64_t num_tokens() const;  // of all texts

  /// Takes O(n log n) comparisons of suffixes, each up to the first token in which they differ.
  /// Afterwards the file is there, whole, or as it was before.
  /// @param info  num_texts is filled in.
  /// @throws UserError  no text was added, there are more tokens than int32 can count, or the file
  ///                    cannot be written.
  void write(const std::filesystem::path& file, TextStoreInfo info) const;

 private:
  std::vector<TokenId> tokens_;  // with the ends
  int64_t num_texts_ = 0;
};

/// A mapped store.
///
/// Thread safety: const calls may run at the same time.
class TextStore {
 public:
  /// Everything is checked here, the checksum included; after that the file is trusted.
  /// @throws UserError  it is missing, no store, of another version, cut short or altered.
  explicit TextStore(const std::filesystem::path& file);

  const TextStoreInfo& info() const { return info_; }
  const std::filesystem::path& path() const { return file_.path(); }
  TokenId max_token() const { return max_token_; }  // of all texts
  int64_t num_tokens() const { return static_cast<int64_t>(suffixes_.size()); }

  /// The places at which the same run of tokens begins: neighbors among the sorted suffixes.
  struct Places {
    int64_t first = 0, last = 0;  // [first, last)
    int32_t length = 0;           // of the run, tokens

    int64_t count() const { return last - first; }
  };

  /// Finds all places of a run; none: it does not occur within a text. The empty run is everywhere.
  Places find(std::span<const TokenId> run) const;

  /// A token that follows a run somewhere, and the places of the run with it.
  struct Next {
    TokenId token = 0;
    Places places;
  };

  /// Lists what follows a run, by ascending token. The end of a text is none of them.
  std::vector<Next> continuations(const Places& run) const;

 private:
  TokenId token_after(const Places& run, int64_t place) const {
    return tokens_[static_cast<size_t>(suffixes_[static_cast<size_t>(place)] + run.length)];
  }
  int64_t end_of(const Places& run, int64_t from, TokenId token) const;
  Places followed_by(const Places& run, TokenId token) const;

  SafetensorsFile file_;
  TextStoreInfo info_;
  TokenId max_token_ = 0;
  std::span<const TokenId> tokens_;
  std::span<const int32_t> suffixes_;
};

}  // namespace medusa
