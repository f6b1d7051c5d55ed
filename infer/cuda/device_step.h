// One decoding step of several sequences on a GPU, from heads to heads, without the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "backbone/cuda/cuda_llama.h"
#include "heads/cuda/device_heads.h"
#include "heads/tree/choice_tree.h"
#include "infer/cuda/step_kernels.h"

namespace medusa {

/// Holds what the rule needs, as a kernel reads it.
struct VerifyParameters {
  DeviceRule rule = DeviceRule::Greedy;
  double temperature = 0;
  double epsilon = 0, delta = 0;  // of the typical rule
  LogitFilter filter{};           // of the match rule
};

/// Places for B sequences, of which the first ones are in use; all of them have the same tree. A
/// step is: the heads fill the trees, all rows run as one pass, the rule judges them, accepted rows
/// move together, lengths grow. Everything it reads and writes lies in buffers that never move.
///
/// Thread safety: none.
class DeviceStep {
 public:
  /// @param llama, heads  kept by reference; heads may be null: plain decoding, a tree of one node.
  /// @param shape         of the tree; ignored without heads. At most 64 nodes.
  /// @param cache         of whole slots; kept by reference.
  DeviceStep(CudaLlama& llama, DeviceHeads* heads, const TreeShape& shape,
             const VerifyParameters& verify, const StepKernels& kernels, const KvCache& cache,
             int32_t num_places);

  /// Starts the step of the first num_sequences places.
  /// @param max_context  no row stands at a later position: lengths before the step and the tree's
  ///                     nodes. Results do not depend on it.
  void run(int32_t num_sequences, int64_t max_context, DeviceStream stream);

  /// A sequence enters a place.
  /// @param length  committed rows of its slot.
  /// @param root    the token after them.
  /// @param state   [H] at the token before the root; undefined: zeros.
  void enter(int32_t place, int32_t slot, int64_t length, TokenId root, const at::Tensor& state,
             uint64_t seed);

  /// Copies the sequence at one place to another.
  void move(int32_t from, int32_t to);

  int32_t num_nodes() const { return num_nodes_; }        // N
  int32_t max_emitted() const { return max_depth_ + 1; }  // tokens of a step, at most

  /// Where steps write what they emit, in turns: [B, 1 + max_emitted()], for each place the number
  /// of tokens, then these; kNoToken for the number where logits were not finite.
  /// @param even, odd  written by kernels. Before the first run().
  void emit_to(int32_t* even, int32_t* odd) { emitted_[0] = even, emitted_[1] = odd; }
  int64_t bytes_emitted() const {
    return slots_.numel() * (1 + max_emitted()) * static_cast<int64_t>(sizeof(int32_t));
  }
  /// Says whose turn the next step is: 0 even, 1 odd.
  void set_turn(int32_t turn) { turn_.fill_(turn); }

  at::Device device() const { return turn_.device(); }

 private:
  DeviceTree tree() const;
  DevicePass pass(int32_t num_sequences, int64_t max_context) const;

  CudaLlama& llama_;
  DeviceHeads* heads_;
  VerifyParameters verify_;
  StepKernels kernels_;
  DeviceCache cache_;
  int32_t num_nodes_ = 1, max_depth_ = 0;

  at::Tensor parents_, depths_, ancestors_;                            // [N] the tree
  at::Tensor slots_, lengths_, roots_, counts_;                        // [B] int32
  at::Tensor seeds_;                                                   // [B] int64
  at::Tensor states_;                                                  // [B, H] bfloat16
  at::Tensor tokens_;                                                  // [B, N] int32
  at::Tensor paths_;                                                   // [B, max_depth + 1] int32
  at::Tensor turn_;                                                    // [1] int32
  at::Tensor row_slots_, starts_, positions_, cache_rows_, verified_;  // [B N] int32
  at::Tensor row_paths_;                                               // [B N] int64
  at::Tensor maxima_, log_sums_, thresholds_;                          // [B N] float32
  at::Tensor tiles_;  // [T, 2] int32, sequence after sequence
  int32_t tiles_per_sequence_ = 1;
  int32_t* emitted_[2] = {};  // not owned
};

}  // namespace medusa
