// Writes a dataset folder: finalized HDF5 shards, each complete or absent. Schema:
// data/dataset/FORMAT.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "data/dataset/sample.h"

namespace medusa {

/// The share of one of several processes: of every `count` shards one after the other, number
/// `index`. The shards of all parts together are those of one process (dataset_merge.h).
struct DatasetPart {
  int64_t index = 0;
  int64_t count = 1;
};

/// Samples come in any order, each with its index; sample i belongs to shard i / shard_size. Shards
/// are finalized (written beside, flushed and renamed into place) in their order, each as soon as
/// all its samples and all shards before it are there. So a run that was killed continues with the
/// shards that are missing and ends with the same bytes as an unbroken one, and a dataset that ends
/// after so many tokens ends at the same shard whatever was finished first.
///
/// States are recorded answer by answer in the order of the samples, until one does not fit into
/// info.states_budget; the answers from there on have none, whatever was finished first.
///
/// Memory: the samples of the shards that are not finalized yet. Thread safety: none; one writer
/// per folder.
class DatasetWriter {
 public:
  /// Opens or continues the dataset in folder; finalized shards are checked whole, and what a
  /// killed run left half-written is removed.
  /// @param num_samples        of the whole dataset; the last shard may be shorter.
  /// @param max_answer_tokens  the dataset ends with the first shard at which this many answer
  ///                           tokens are reached; 0: with sample num_samples - 1.
  /// @throws UserError  the folder holds a dataset made with other settings, or a damaged one, or
  ///                    cannot be written.
  DatasetWriter(std::filesystem::path folder, DatasetInfo info, int64_t num_samples,
                int64_t shard_size, int64_t max_answer_tokens = 0);

  /// One part of the dataset. It has no limit of answer tokens: where that ends the dataset, only
  /// all parts together know.
  DatasetWriter(std::filesystem::path folder, DatasetInfo info, int64_t num_samples,
                int64_t shard_size, const DatasetPart& part);

  /// True when sample i need not be generated: its shard is finalized, lies behind the end or is
  /// another part's.
  bool has(int64_t i) const;

  /// Takes sample i, which has() denies and which was not added before; finalizes what is complete.
  /// A sample without answer tokens (a prompt that was skipped) counts but is not stored.
  /// @throws UserError  the disk is full; finalized shards stay, the others are lost.
  void add(int64_t i, Sample sample);

  /// True when the last shard, of the part, is finalized; then every has(i) is true.
  bool complete() const { return complete_; }

  int64_t num_samples() const { return num_samples_; }
  int64_t num_own_samples() const;  // of the part
  int64_t max_answer_tokens() const { return max_answer_tokens_; }

  /// Of the shards finalized so far, up to the first that is missing.
  int64_t num_stored() const { return num_stored_; }                // samples with an answer
  int64_t num_answer_tokens() const { return num_answer_tokens_; }  // tokens
  int64_t num_state_rows() const { return num_state_rows_; }        // of them have states

 private:
  struct Finalized {
    int64_t samples = 0;
    int64_t answer_tokens = 0;
    int64_t state_rows = 0;
    bool last = false;
  };
  int64_t num_shards() const { return (num_samples_ + shard_size_ - 1) / shard_size_; }
  bool owns(int64_t shard) const { return shard % part_.count == part_.index; }
  void open();
  int64_t count_of(int64_t shard) const;
  bool ends_at(int64_t shard, int64_t answer_tokens) const;
  void remove_leftovers() const;
  void open_finalized();
  void finalize_complete_shards();
  Finalized finalize(int64_t shard);
  bool states_are_used_up() const { return num_state_rows_ < num_answer_tokens_; }
  bool fits_budget(int64_t state_rows) const;

  std::filesystem::path folder_;
  DatasetInfo info_;
  int64_t num_samples_;
  int64_t shard_size_;
  int64_t max_answer_tokens_ = 0;
  DatasetPart part_;
  std::map<int64_t, Finalized> finalized_;
  std::map<int64_t, std::map<int64_t, Sample>> open_;  // shard -> its samples so far
  int64_t next_ = 0;  // every shard before this one is finalized and counted below
  bool complete_ = false;
  int64_t num_stored_ = 0;
  int64_t num_answer_tokens_ = 0;
  int64_t num_state_rows_ = 0;
};

}  // namespace medusa
