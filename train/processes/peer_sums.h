// What trainers exchange with their peers. Where one process trains alone (peers is null) nothing
// happens and what is given comes back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/adamw.h"
#include "train/loss/loss.h"
#include "train/processes/peers.h"

namespace medusa {

/// Leaves the sum of all processes' gradients in each parameter's; one without a gradient counts as
/// zeros.
void sum_gradients(Peers* peers, const NamedTensors& parameters);

void sum_losses(Peers* peers, std::vector<HeadLoss>& heads);
void sum_counts(Peers* peers, std::vector<int64_t>& counts);
void sum_value(Peers* peers, double& value);

/// Whether it is true in any process.
bool is_true_in_any(Peers* peers, bool mine);

/// Process 0's value.
int64_t value_of_first(Peers* peers, int64_t mine);
std::string text_of_first(Peers* peers, const std::string& mine);

/// Process 0's parameters.
void take_parameters_of_first(Peers* peers, const NamedTensors& parameters);

/// Process 0's parameters, moments and steps.
void take_state_of_first(Peers* peers, const NamedTensors& parameters, AdamW& optimizer);

/// @throws UserError  a process holds other parameters than process 0.
void check_same_parameters(Peers* peers, const NamedTensors& parameters, int64_t step);

inline int64_t peer_rank(const Peers* peers) { return peers == nullptr ? 0 : peers->rank(); }
inline int64_t peer_count(const Peers* peers) { return peers == nullptr ? 1 : peers->count(); }

/// True for the one that writes files and talks to the user.
inline bool is_first(const Peers* peers) { return peer_rank(peers) == 0; }

}  // namespace medusa
