// What stands between two passes of a decoding step on a GPU: judging the rows, walking the tree,
// picking the heads' drafts, laying out the next tree. One table, as
// backbone/cuda/layer_kernels.h, and under the same rules: nothing allocates, nothing waits for the
// host.
#pragma once

#include "backbone/cuda/device_types.h"

namespace medusa {

/// Who decides which nodes stand (infer/rules/).
enum class DeviceRule { Greedy, Match, Typical };

/// Which tokens may be drawn, as SamplingConfig has it (infer/sampling.h).
struct LogitFilter {
  int64_t top_k = 0;  // 0: all
  double top_p = 1;   // 1: all
  float min_p = 0;    // 0: all

  bool filters() const { return top_k > 0 || top_p < 1 || min_p > 0; }
};

/// In place of a token where logits are not finite, and so in place of a step's count.
inline constexpr int32_t kNoToken = -1;

/// Looks at every row of logits once: the token that the rule would emit after it and, for the
/// typical rule, what a child's logit is compared with.
struct VerifyRowsArgs {
  DeviceRule rule = DeviceRule::Greedy;
  const float* logits = nullptr;  // [R, V]
  int64_t num_rows = 0;           // R
  int64_t vocab_size = 0;         // V
  double temperature = 0;         // Match: > 0. Typical: 0 takes p and entropy at 1 and the argmax
  LogitFilter filter{};           // of Match
  double epsilon = 0, delta = 0;  // of the typical rule
  const uint64_t* seeds = nullptr;     // [B] Random's, of each sequence
  const int32_t* positions = nullptr;  // [R] of the rows: the draw's address (RandomUse::Accept)
  int32_t rows_per_sequence = 0;       // N: row r belongs to sequence r / N
  int32_t* tokens = nullptr;           // [R] written: argmax (of equals the first), or the draw;
                                       // kNoToken where the largest logit is not finite
  float* maxima = nullptr;             // [R] written for Typical: the largest logit
  float* log_sums = nullptr;           // [R] written for Typical: log Σ exp((z - max) / T)
  float* thresholds = nullptr;         // [R] written for Typical: min(ε, δ exp(-entropy))
};

/// The shape of a fixed tree, on the device. Node 0 is the root; parents come first.
struct DeviceTree {
  const int32_t* parents = nullptr;  // [N], parents[0] = -1
  const int32_t* depths = nullptr;   // [N]
  const uint64_t* paths = nullptr;   // [N] bit i: node i is an ancestor, or the node itself
  int32_t num_nodes = 0;             // N, 1 to 64
  int32_t max_depth = 0;
};

/// Walks each sequence's tree, one block per sequence.
struct WalkArgs {
  DeviceRule rule = DeviceRule::Greedy;
  DeviceTree tree;
  const int32_t* tokens = nullptr;    // [B, N] of the nodes
  const int32_t* verified = nullptr;  // [B, N] VerifyRowsArgs::tokens
  const float* logits = nullptr;      // [B N, V], and the three of verify_rows(): for Typical
  int64_t vocab_size = 0;
  double temperature = 0;
  const float* maxima = nullptr;
  const float* log_sums = nullptr;
  const float* thresholds = nullptr;
  int32_t num_sequences = 0;      // B
  int32_t* counts = nullptr;      // [B] written: rows that stay, the root's included
  int32_t* paths = nullptr;       // [B, max_depth + 1] written: those rows' nodes, ascending from 0
  int32_t* next = nullptr;        // [B] written: the token after the path, the next root
  int32_t* emitted[2] = {};       // [B, max_depth + 2] one is written: count or kNoToken, then the
                                  // tokens: those of the path below the root, then next
  const int32_t* turn = nullptr;  // [1] which one is
};

/// lengths += counts; the last row of each path to `states`; the other turn.
struct AdvanceArgs {
  int32_t num_sequences = 0;        // B
  int32_t num_nodes = 0;            // N
  int32_t max_path = 0;             // max_depth + 1
  const int32_t* counts = nullptr;  // [B]
  const int32_t* paths = nullptr;   // [B, max_path]
  int32_t* lengths = nullptr;       // [B]
  const Bf16* hidden = nullptr;     // [B N, H]
  int64_t hidden_size = 0;          // H
  Bf16* states = nullptr;           // [B, H] written
  int32_t* turn = nullptr;          // [1] counts on
};

/// The top-k drafts of each row of head logits, best first; of equals the lower row number.
struct TopKArgs {
  const float* logits = nullptr;          // [M, V_t]
  int64_t num_rows = 0;                   // M
  int64_t row_size = 0;                   // V_t
  int32_t k = 0;                          // 1 to 16, at most V_t
  const int32_t* token_of_row = nullptr;  // [V_t]; null: a row number is its token
  int32_t* tokens = nullptr;              // [M, k] written
};

/// Where the rows of a pass over all trees stand (DeviceRows).
struct PlaceRowsArgs {
  DeviceTree tree;
  const int32_t* slots = nullptr;    // [B]
  const int32_t* lengths = nullptr;  // [B]
  int32_t num_sequences = 0;         // B
  int32_t* row_slots = nullptr;      // [B N] written, as the next ones
  int32_t* starts = nullptr;
  int32_t* positions = nullptr;
  int32_t* cache_rows = nullptr;
  uint64_t* paths = nullptr;
};

struct StepKernels {
  const char* name;
  void (*verify_rows)(const VerifyRowsArgs& args, DeviceStream stream);
  void (*walk)(const WalkArgs& args, DeviceStream stream);
  void (*advance)(const AdvanceArgs& args, DeviceStream stream);
  void (*top_k)(const TopKArgs& args, DeviceStream stream);
  void (*place_rows)(const PlaceRowsArgs& args, DeviceStream stream);
};

/// Gives the kernels of this build; null where it was made without a CUDA compiler.
const StepKernels* cuda_step_kernels();

}  // namespace medusa
