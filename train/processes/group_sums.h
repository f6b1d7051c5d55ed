// What stages exchange with the processes that train with them. Where one process trains alone
// (group is null) nothing happens and what is given comes back. MPI may still write into a message
// that a failure has left behind, so all of them are tensors, which the group keeps then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/adamw.h"
#include "train/loss/loss.h"
#include "train/processes/process_group.h"

namespace medusa {

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
void take_parameters_of_first(ProcessGroup* group, const NamedTensors& parameters);

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
