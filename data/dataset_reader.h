// Reads a dataset folder. Everything is checked when it is opened; after that it is trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/sample.h"

namespace medusa {

/// All shards of a dataset as one list of samples, in shard order.
///
/// Thread safety: const calls may run at the same time.
class DatasetReader {
 public:
  /// Tokens are read into memory; hidden states stay on disk until hidden() asks for them.
  /// @throws UserError  no shard; a shard cut short, altered (checksum), of another version, or
  /// made
  ///                    with other settings than its neighbours; a gap between shards.
  explicit DatasetReader(const std::filesystem::path& folder);
  ~DatasetReader();

  const DatasetInfo& info() const { return info_; }
  int64_t size() const { return static_cast<int64_t>(answer_starts_.size()); }  // samples
  int64_t num_answer_tokens() const { return num_answer_tokens_; }

  std::span<const TokenId> tokens(int64_t i) const;
  int64_t answer_start(int64_t i) const { return answer_starts_[static_cast<size_t>(i)]; }
  const std::string& prompt_id(int64_t i) const { return prompt_ids_[static_cast<size_t>(i)]; }

  /// Copies sample i's hidden rows, bfloat16 bits [tokens - answer_start, H], to out.
  /// @param out  exactly that many elements.
  void read_hidden(int64_t i, std::span<uint16_t> out) const;
  bool has_hidden() const { return info_.hidden_size > 0; }

  /// Of the samples themselves (not of the hidden states): two datasets with the same text are
  /// equal.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct Shards;
  DatasetInfo info_;
  std::string fingerprint_;
  std::vector<TokenId> tokens_;   // all samples, one after the other
  std::vector<int64_t> offsets_;  // [samples + 1] into tokens_
  std::vector<int64_t> answer_starts_;
  std::vector<std::string> prompt_ids_;
  int64_t num_answer_tokens_ = 0;
  std::unique_ptr<Shards> shards_;
};

}  // namespace medusa
