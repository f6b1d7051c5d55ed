// The kernels of Medusa heads on a GPU, besides their GEMMs and top_k: one table, as
// backbone/cuda/layer_kernels.h, and under the same rules.
#pragma once

#include "backbone/cuda/device_types.h"

namespace medusa {

/// What a head's first GEMM reads: row b * P + p is [y; gain * e(root); gain * e(path token 1);
/// …] (heads/medusa_heads.h), E tokens long, along path p of sequence b's tree.
struct ReadPathsArgs {
  const Bf16* states = nullptr;  // [B, H], or [B P, H] if per_path: y
  bool per_path = false;
  const Bf16* embedding = nullptr;  // [V, H]
  float gain = 1;                   // a power of two
  const int32_t* tokens = nullptr;  // [B, N] of the trees
  const int32_t* paths = nullptr;   // [P, E] nodes, the root's first
  int32_t num_nodes = 0;            // N
  int32_t num_paths = 0;            // P
  int32_t num_read = 0;             // E, may be 0
  int32_t num_sequences = 0;        // B
  int64_t hidden_size = 0;          // H
  Bf16* out = nullptr;              // [B P, (1 + E) H]
};

/// out = silu(x + bias), or x itself, rounded. What G heads have beside each other in a row stands
/// head by head afterwards.
struct RoundRowsArgs {
  const float* x = nullptr;     // [M, G, n]
  const float* bias = nullptr;  // [G, n]; null: x is only rounded
  int64_t num_rows = 0;         // M
  int64_t num_heads = 1;        // G
  int64_t size = 0;             // n
  Bf16* out = nullptr;          // [G, M, n]
};

/// out = y + inner, or y + silu(inner + bias), summed in float32 and rounded once; heads as in
/// RoundRowsArgs.
struct AddStateArgs {
  const Bf16* y = nullptr;       // [Y, H]
  int64_t num_y = 0;             // Y, a divisor of M / rows_per_y
  int64_t rows_per_y = 1;        // row m reads y[m / rows_per_y % Y]
  const float* inner = nullptr;  // [M, G, H]
  const float* bias = nullptr;   // [G, H]; null: inner is added as it is
  int64_t num_rows = 0;          // M
  int64_t num_heads = 1;         // G
  int64_t hidden_size = 0;       // H
  Bf16* out = nullptr;           // [G, M, H]
};

/// Before a GEMM adds a head's correction (heads/correction.h) to its logits: rows b * P + p of
/// what the factor multiplies, and of the logits without it.
struct BeginCorrectionArgs {
  const int32_t* tokens = nullptr;        // [B, N] of the trees
  const int32_t* parents = nullptr;       // [P] nodes that the head drafts after
  const int32_t* row_of_token = nullptr;  // [V] of the table
  const Bf16* table = nullptr;            // [V_t + 1, R]
  const float* logits = nullptr;          // [B, V_t] of the head
  int32_t num_nodes = 0;                  // N
  int32_t num_paths = 0;                  // P
  int32_t num_sequences = 0;              // B
  int64_t rank = 0;                       // R
  int64_t row_size = 0;                   // V_t
  Bf16* before = nullptr;                 // [B P, R] written
  float* corrected = nullptr;             // [B P, V_t] written
};

/// Tokens of nodes [begin, end): the root, or drafts of a head after some paths, or of all heads.
struct FillNodesArgs {
  const int32_t* roots = nullptr;          // [B] the root's tokens; read where begin is 0
  const int32_t* drafts = nullptr;         // [rows, k]
  const int32_t* place_of_node = nullptr;  // [N] of the path that a node continues, or of its head
  const int32_t* ranks = nullptr;          // [N] which of the drafts it is
  int32_t sequence_stride = 0, place_stride = 0;  // rows of drafts from one to the next
  int32_t begin = 0, end = 0;
  int32_t num_nodes = 0;      // N
  int32_t top_k = 0;          // k
  int32_t num_sequences = 0;  // B
  int32_t* tokens = nullptr;  // [B, N] of which these are written
};

struct HeadKernels {
  const char* name;
  void (*read_paths)(const ReadPathsArgs& args, DeviceStream stream);
  void (*round_rows)(const RoundRowsArgs& args, DeviceStream stream);
  void (*add_state)(const AddStateArgs& args, DeviceStream stream);
  void (*begin_correction)(const BeginCorrectionArgs& args, DeviceStream stream);
  void (*fill_nodes)(const FillNodesArgs& args, DeviceStream stream);
};

/// Gives the kernels of this build; null where it was made without a CUDA compiler.
const HeadKernels* cuda_head_kernels();

}  // namespace medusa
