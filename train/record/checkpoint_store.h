// The checkpoints in a run's folder: the last, which a killed run continues; the ones before it, as
// many as are asked for; the best. Of several processes the first reads and writes them, and the
// others take over what it holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "train/processes/process_group.h"
#include "train/record/checkpoint.h"

namespace medusa {

/// Of several processes all call the same functions, but for last(), has_one(), unreported(),
/// check_best() and offer(), which are the first one's.
///
/// Thread safety: none.
class CheckpointStore {
 public:
  /// @param optimizer  and the tensors of parameters must outlive the store.
  /// @param keep       how many checkpoints stay, at least 1. With more than one, each is also
  ///                   checkpoint-<step>, whose files take no room of their own while it is the
  ///                   last.
  /// @param group      the processes that train together; null: none.
  CheckpointStore(std::filesystem::path folder, RunIdentity identity, NamedTensors parameters,
                  AdamW& optimizer, int64_t keep, ProcessGroup* group = nullptr);

  /// Fills parameters and optimizer from the last checkpoint, if there is one, and ends or removes
  /// what a run that was killed left half-written.
  /// @param num_steps  of the whole run.
  /// @returns          optimizer steps done; 0 if there is none: then a best one is of no use and
  ///                   removed.
  /// @throws UserError  as load_checkpoint() does, of the best one, too; the checkpoint says more
  ///                    steps than the run has; a process has another identity.
  int64_t load(int64_t num_steps);

  /// Of the first process: what the checkpoint that was loaded kept of steps that no report had
  /// told of yet.
  const std::vector<double>& unreported() const { return notes_.unreported; }

  /// Of the first process, behind load(): that the best checkpoint is the one which the last tells
  /// of, or a later one.
  /// @throws UserError  it is not.
  void check_best() const;

  /// Saves the last checkpoint and removes those that are too old.
  /// @param unreported  sums over the steps since the last report.
  /// @throws UserError  a process holds other parameters.
  void save(const std::vector<double>& unreported = {});

  /// Saves the best one if no earlier one was as good.
  /// @param tokens_per_step  expected of it.
  void offer(double tokens_per_step);

  /// Fills parameters from the best checkpoint.
  /// @returns  its step; nothing if there is none.
  std::optional<int64_t> load_best();

  std::filesystem::path last() const { return folder_ / "checkpoint"; }
  bool has_one() const;

 private:
  std::filesystem::path best() const { return folder_ / "checkpoint-best"; }
  double best_score() const;  // 0: there is none
  std::filesystem::path numbered(int64_t step) const;
  /// Whether the folder is a second name of the last one.
  bool holds_last(const std::filesystem::path& folder) const;
  void keep_last_ones() const;

  std::filesystem::path folder_;
  RunIdentity identity_;
  NamedTensors parameters_;
  AdamW& optimizer_;
  int64_t keep_;
  ProcessGroup* group_;
  CheckpointNotes notes_;  // of the last one
};

}  // namespace medusa
