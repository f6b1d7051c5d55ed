// Which nodes stand (infer/rules/), a block to a sequence and a thread to a node. A node is reached
// when it and all its ancestors stand, which are bits of a word; the walk ends at the best of
// those.
#pragma once

#include "infer/cuda/step_kernels.h"
#include "infer/cuda/verify_rows.cuh"

namespace medusa {
namespace {

constexpr int kMostNodes = 64;

__device__ inline bool has_node(uint64_t nodes, int i) { return (nodes >> i & 1) != 0; }

/// The nodes whose threads say yes, known to all.
__device__ inline uint64_t nodes_where(bool mine) {
  __shared__ unsigned of_warps[kMostNodes / kWarp];
  const unsigned warp = ballot(mine);
  if (thread_index() % kWarp == 0) of_warps[thread_index() / kWarp] = warp;
  sync_block();
  const uint64_t all = uint64_t{of_warps[0]} | uint64_t{of_warps[1]} << kWarp;
  sync_block();
  return all;
}

/// The target's view of a node.
struct VerifiedNode {
  bool stands;
  double log_probability;  // typical rule: given its parent
};

/// @param i  a node below the root.
__device__ inline VerifiedNode verify_node(const WalkArgs& args, int64_t first_row, int i) {
  const int64_t parent = first_row + args.tree.parents[i];
  const int32_t token = args.tokens[first_row + i];
  if (args.rule != DeviceRule::Typical) return {token == args.verified[parent], 0};
  const float below = args.logits[parent * args.vocab_size + token] - args.maxima[parent];
  const double log_p = static_cast<double>(below * inverse_of(args.temperature)) -
                       static_cast<double>(args.log_sums[parent]);
  return {exp(log_p) > static_cast<double>(args.thresholds[parent]), log_p};
}

/// Whether an earlier child of the same parent stands: only one may hold the verified token.
__device__ inline bool has_standing_sibling(const DeviceTree& tree, uint64_t standing, int node) {
  for (int i = tree.parents[node] + 1; i < node; ++i)
    if (has_node(standing, i) && tree.parents[i] == tree.parents[node]) return true;
  return false;
}

/// The longest of the reached nodes' paths; of equals the more probable; of equals the first.
/// @param log_probabilities  [N] of each node given its parent.
__device__ inline int best_node(const DeviceTree& tree, uint64_t reached,
                                const double* log_probabilities) {
  int best = 0;
  double best_log = 0;
  for (int i = 1; i < tree.num_nodes; ++i) {
    if (!has_node(reached, i) || tree.depths[i] < tree.depths[best]) continue;
    double log_p = 0;
    for (int above = 1; above <= i; ++above)  // root first
      if (has_node(tree.paths[i], above)) log_p += log_probabilities[above];
    if (tree.depths[i] == tree.depths[best] && !(log_p > best_log)) continue;
    best = i;
    best_log = log_p;
  }
  return best;
}

__global__ void __launch_bounds__(kMostNodes) walk_kernel(const WalkArgs args) {
  begin_kernel();
  __shared__ double log_probabilities[kMostNodes];
  __shared__ int walked_to;
  const DeviceTree& tree = args.tree;
  const int i = thread_index();
  const auto sequence = static_cast<int64_t>(blockIdx.x);
  const int64_t first_row = sequence * tree.num_nodes;

  VerifiedNode mine{i == 0, 0};
  if (i > 0 && i < tree.num_nodes) mine = verify_node(args, first_row, i);
  log_probabilities[i] = mine.log_probability;
  uint64_t standing = nodes_where(mine.stands);
  if (args.rule != DeviceRule::Typical)
    standing = nodes_where(mine.stands && (i == 0 || !has_standing_sibling(tree, standing, i)));
  const uint64_t reached = nodes_where(i < tree.num_nodes && (tree.paths[i] & ~standing) == 0);
  if (i == 0) walked_to = best_node(tree, reached, log_probabilities);
  sync_block();

  const int last = walked_to, depth = tree.depths[last];
  if (i < tree.num_nodes && has_node(tree.paths[last], i)) {
    int32_t* emitted = args.emitted[*args.turn % 2] + sequence * (tree.max_depth + 2);
    args.paths[sequence * (tree.max_depth + 1) + tree.depths[i]] = i;
    if (i > 0) emitted[tree.depths[i]] = args.tokens[first_row + i];
    if (i == last) {
      const int32_t next = args.verified[first_row + last];
      args.counts[sequence] = depth + 1;
      args.next[sequence] = next == kNoToken ? 0 : next;  // the next step may run already
      emitted[0] = next == kNoToken ? kNoToken : depth + 1;
      emitted[depth + 1] = next;
    }
  }
}

void walk(const WalkArgs& args, DeviceStream stream) {
  launch(walk_kernel, dim3(static_cast<unsigned>(args.num_sequences)), kMostNodes, 0, stream, args);
}

}  // namespace
}  // namespace medusa
