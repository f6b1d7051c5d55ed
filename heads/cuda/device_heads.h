// Medusa heads on a GPU: a choice tree filled with their drafts, without the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "backbone/cuda/device_gemm.h"
#include "heads/cuda/head_kernels.h"
#include "heads/medusa_heads.h"
#include "heads/tree/choice_tree.h"

namespace medusa {

/// The top-k drafts of [num_rows, row_size] head logits to [num_rows, top_k] tokens
/// (infer/cuda/step_kernels.h has the kernel).
using PickDrafts =
    std::function<void(const float* logits, int64_t num_rows, int64_t row_size, int32_t top_k,
                       const int32_t* token_of_row, int32_t* tokens, DeviceStream stream)>;

/// The device's MedusaDrafter over a fixed tree. Rounds as ReferenceHeads does. Heads of one layer
/// that read no drafts are computed together, but for their correction. Others depth by depth: the
/// drafts after all paths that have children together, so that sequential heads read the tokens
/// that were just drafted.
///
/// Thread safety: none (scratch buffers).
class DeviceHeads {
 public:
  /// Says whether these are of a kind that it computes: every kind without a prefix layer,
  /// corrected ones with one layer and a shared output, beside a backbone in bfloat16 or quantized;
  /// themselves in bfloat16.
  static bool supports(const HeadsConfig& config, const Weights& backbone);

  /// @param shape  its nodes come in order of depth, its depth is at most K.
  DeviceHeads(const MedusaHeads& heads, const Weights& backbone, const TreeShape& shape,
              int64_t top_k, const HeadKernels& kernels, const GemmKernels& gemms, PickDrafts pick);

  /// Room for so many sequences: later calls of fill() allocate nothing.
  void reserve(int64_t num_sequences);

  /// @param states  [B, H] at the token before each root.
  /// @param roots   [B]
  /// @param tokens  [B, N] written.
  void fill(const Bf16* states, const int32_t* roots, int64_t num_sequences, int32_t* tokens,
            DeviceStream stream);

  int64_t bytes() const;  // of the weights that a step reads

 private:
  /// One residual layer of one head.
  struct Block {
    DeviceGemm first;   // unused where all_first_ is used
    DeviceGemm second;  // unused where no tokens are read
    at::Tensor bias;    // [H] float32; undefined where first is unused
  };
  /// What head d computes: the drafts after nodes of depth d that have children.
  struct Question {
    int32_t num_paths = 0;       // P
    int32_t begin = 0, end = 0;  // nodes of depth d + 1
    at::Tensor paths;            // [P, E] int32
    at::Tensor parents;          // [P] int32 nodes; of corrected heads alone
  };

  /// Whether heads are computed together.
  bool at_once() const { return all_first_.defined(); }
  int64_t depth() const { return std::ssize(questions_); }  // D of the tree: heads that it needs

  void plan_depths(const TreeShape& shape);
  void fill_depths(const Bf16* states, int64_t num_sequences, FillNodesArgs fill,
                   DeviceStream stream);
  void fill_at_once(const Bf16* states, int64_t num_sequences, FillNodesArgs fill,
                    DeviceStream stream);
  void fill_corrected(int64_t num_sequences, FillNodesArgs fill, DeviceStream stream);
  void pick(const float* logits, int64_t num_rows, DeviceStream stream);
  void pick_and_fill(const Question& question, const float* logits, FillNodesArgs fill,
                     DeviceStream stream);
  const Bf16* run_layers_at_once(const Bf16* states, int64_t num_sequences, const int32_t* tokens,
                                 DeviceStream stream);
  const Bf16* run_layers(int64_t head, const Question& question, const Bf16* states,
                         int64_t num_sequences, const int32_t* tokens, DeviceStream stream);

  HeadsConfig config_;
  int64_t hidden_size_, top_k_, num_nodes_, row_size_ = 0;
  HeadKernels kernels_;
  PickDrafts pick_;
  at::Tensor embedding_;  // [V, H]; undefined where heads read no tokens
  double gain_ = 1;
  at::Tensor token_of_row_;  // [V_t] int32; undefined: a row is its token
  std::vector<Block> blocks_;
  DeviceGemm all_first_;  // the first matrices of D heads, one below the other; or unused
  at::Tensor all_bias_;   // [D, H] float32
  std::vector<DeviceGemm> outputs_, downs_;
  std::vector<DeviceGemm> corrections_;     // [D - 1] U of heads 1, 2, …, or none
  at::Tensor before_table_, row_of_token_;  // [V_t + 1, R] bfloat16; [V] int32
  std::vector<Question> questions_;         // [D]
  at::Tensor place_of_node_, ranks_;        // [N] int32
  int64_t rows_per_sequence_ = 1, most_read_ = 0;

  int64_t rows_ = 0;
  at::Tensor read_, rounded_, states_[2];  // bfloat16
  at::Tensor inner_, logits_;              // float32
  at::Tensor before_, corrected_;          // [B P, R] bfloat16, [B P, V_t] float32
  at::Tensor sums_;                        // float32, scratch of the GEMMs
  at::Tensor drafts_;                      // int32
};

}  // namespace medusa
