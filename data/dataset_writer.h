// Writes a dataset folder: sealed HDF5 shards, each complete or absent. Schema: data/FORMAT.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "data/sample.h"

namespace medusa {

/// Samples come in any order, each with its index; sample i belongs to shard i / shard_size. A
/// shard is written, flushed and renamed into place once all its samples are there, so a run that
/// was killed continues with the shards that are missing and ends with the same bytes as an
/// unbroken one.
///
/// Thread safety: none.
class DatasetWriter {
 public:
  /// Opens or continues the dataset in folder.
  /// @param num_samples  of the whole dataset; the last shard may be shorter.
  /// @throws UserError  the folder holds a dataset made with other settings, or cannot be written.
  DatasetWriter(std::filesystem::path folder, DatasetInfo info, int64_t num_samples,
                int64_t shard_size);

  /// True when the shard of sample i is sealed: it need not be generated again.
  bool has(int64_t i) const;

  /// Takes sample i; seals its shard when it was the last one missing.
  /// A sample without answer tokens (a prompt that was skipped) counts but is not stored.
  /// @throws UserError  the disk is full; sealed shards stay, the others are lost.
  void add(int64_t i, Sample sample);

  int64_t num_samples() const { return num_samples_; }

 private:
  void seal(int64_t shard);

  std::filesystem::path folder_;
  DatasetInfo info_;
  int64_t num_samples_;
  int64_t shard_size_;
  std::set<int64_t> sealed_;
  std::map<int64_t, std::map<int64_t, Sample>> open_;  // shard -> its samples so far
};

}  // namespace medusa
