// What several processes that train together have of each step: the part of every batch that is its
// own, and what it exchanges with the others. Where one process trains alone (group is null)
// nothing is exchanged and what is given comes back. MPI may still write into a message that a
// failure has left behind, so all of them are tensors, which the group keeps then.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/dataset_reader.h"
#include "train/adamw.h"
#include "train/loss/loss.h"
#include "train/processes/process_group.h"

namespace medusa {

/// One process's part of a pool: the positions that lie in its own samples. It reads, keeps and
/// labels these samples alone, and a batch has the same positions whatever the number of processes.
struct ShardedSamples {
  std::vector<int64_t> samples;    // of the pool's, in their order
  std::vector<int64_t> positions;  // [pool] where each position is among those of the own samples;
                                   // -1: it is another process's

  /// Those of some of the pool's positions that are its own.
  std::vector<int64_t> own_of(std::span<const int64_t> pool_positions) const;
};

/// Deals the samples out, each to the process that has the fewest positions so far. A batch drawn
/// from the pool then gives each process about as many, within the chance of the draw.
/// @param samples  the pool's.
ShardedSamples sharded_samples(const DatasetReader& dataset, std::span<const int64_t> samples,
                               int64_t rank, int64_t count);

/// Leaves the sum of all processes' gradients in each parameter's; one without a gradient counts as
/// zeros.
void sum_gradients(ProcessGroup* group, const NamedTensors& parameters);

void sum_losses(ProcessGroup* group, std::vector<HeadLoss>& heads);
void sum_counts(ProcessGroup* group, std::vector<int64_t>& counts);
void sum_value(ProcessGroup* group, double& value);

/// Whether it is true in any process.
bool is_true_in_any(ProcessGroup* group, bool mine);

/// Process 0's value.
int64_t value_of_first(ProcessGroup* group, int64_t mine);
std::string text_of_first(ProcessGroup* group, const std::string& mine);

/// Process 0's parameters.
void broadcast_parameters(ProcessGroup* group, const NamedTensors& parameters);

/// Process 0's parameters, moments and steps.
void take_state_of_first(ProcessGroup* group, const NamedTensors& parameters, AdamW& optimizer);

/// @throws UserError  a process holds other parameters than process 0.
void check_same_parameters(ProcessGroup* group, const NamedTensors& parameters, int64_t step);

inline int64_t group_rank(const ProcessGroup* group) {
  return group == nullptr ? 0 : group->rank();
}
inline int64_t group_size(const ProcessGroup* group) {
  return group == nullptr ? 1 : group->world_size();
}

/// True for the one that writes files and talks to the user.
inline bool is_first(const ProcessGroup* group) { return group_rank(group) == 0; }

}  // namespace medusa
