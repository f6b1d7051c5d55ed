// Reads a dataset folder, or several as one. Everything is checked when it is opened; after that it
// is trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/sample.h"
#include "data/dataset/shard_file.h"

namespace medusa {

/// A dataset to read, and how often an epoch visits each of its samples (sample_order.h).
struct WeightedFolder {
  std::filesystem::path folder;
  double weight = 1;  // positive
};

/// One of the datasets that a reader holds. Its samples are [first, first + count) of all.
struct DatasetSource {
  std::filesystem::path folder;
  double weight = 1;
  std::string fingerprint;  // of its samples
  int64_t num_hidden = 0;   // samples whose states are recorded
  int64_t first = 0;
  int64_t count = 0;
};

/// All shards of a dataset as one list of samples, in shard order; of several datasets those of the
/// first, then those of the second, and so on.
///
/// Thread safety: const calls may run at the same time; opening is for one thread at a time.
class DatasetReader {
 public:
  /// Tokens are read into memory; hidden states stay in the mapped files until read_hidden() asks
  /// for them.
  /// @throws UserError  no shard; a shard cut short, altered (checksum), of another version, or
  ///                    made with other settings than its neighbors; a gap between shards.
  explicit DatasetReader(const std::filesystem::path& folder);

  /// Several datasets of one backbone and tokenizer.
  /// @param folders  at least one.
  /// @throws UserError  as above; two of different models; the same samples twice.
  explicit DatasetReader(std::span<const WeightedFolder> folders);

  /// Of several datasets prompts, sampling, seed and how states are kept are the first one's;
  /// hidden_size is 0 if none of them holds states.
  const DatasetInfo& info() const { return info_; }

  /// At least one.
  const std::vector<DatasetSource>& sources() const { return sources_; }
  const DatasetSource& source_of(int64_t i) const;
  int64_t size() const { return static_cast<int64_t>(answer_starts_.size()); }  // samples
  int64_t num_answer_tokens() const { return num_answer_tokens_; }
  int64_t num_prompts() const { return num_prompts_; }  // with those that gave no sample
  int64_t num_shards() const { return static_cast<int64_t>(shards_.size()); }

  /// False while `medusa distill` has more to write: the samples are then only the first ones.
  bool complete() const { return complete_; }

  std::span<const TokenId> tokens(int64_t i) const;
  std::span<const TokenId> answer(int64_t i) const {
    return tokens(i).subspan(static_cast<size_t>(answer_start(i)));
  }
  int64_t answer_start(int64_t i) const { return answer_starts_[static_cast<size_t>(i)]; }
  const std::string& prompt_id(int64_t i) const { return prompt_ids_[static_cast<size_t>(i)]; }

  /// Copies the hidden rows of a sample that has some, bfloat16 bits [tokens - answer_start, H], to
  /// out.
  /// @param out  exactly that many elements.
  void read_hidden(int64_t i, std::span<uint16_t> out) const;
  /// Whether sample i's are recorded, and whether all are.
  bool has_hidden(int64_t i) const { return hidden_rows_[static_cast<size_t>(i)].first >= 0; }
  bool has_hidden() const { return num_hidden_ == size() && size() > 0; }
  int64_t num_hidden() const { return num_hidden_; }  // samples that have some
  int64_t num_hidden_tokens() const;                  // their answer tokens

  /// Of the samples themselves (not of the hidden states): two datasets with the same text are
  /// equal. Of several datasets, of their fingerprints and weights.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  /// Where a sample's hidden rows lie.
  struct HiddenRows {
    size_t shard = 0;
    int64_t first = -1;  // row; -1: not recorded
  };
  void check_follows(const ShardFile& shard, int64_t first) const;
  void take(ShardFile& shard, size_t number);
  void check_fits(const DatasetReader& other) const;
  void append(DatasetReader&& other);
  std::string compute_fingerprint() const;

  DatasetInfo info_;
  std::string fingerprint_;
  bool complete_ = false;
  std::vector<DatasetSource> sources_;
  std::vector<TokenId> tokens_;      // all samples, one after the other
  std::vector<int64_t> offsets_{0};  // [samples + 1] into tokens_
  std::vector<int64_t> answer_starts_;
  std::vector<std::string> prompt_ids_;
  std::vector<HiddenRows> hidden_rows_;
  int64_t num_answer_tokens_ = 0;
  int64_t num_hidden_ = 0;
  int64_t num_prompts_ = 0;
  std::vector<ShardFile> shards_;
};

}  // namespace medusa
