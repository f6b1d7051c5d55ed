// The kernels of a transformer layer on a GPU, besides its GEMMs: one table, so that the real
// ones and the emulated ones of the tests are called alike.
//
// A row's results are the same bits whatever rows run beside it, how many splits the context has
// and how its path lies in the cache. All run on the given stream, allocate nothing and never wait
// for the host; what they read of lengths and positions is on the device. So a CUDA graph may
// capture them. Residual stream and sums are float32, what enters GEMMs bfloat16.
#pragma once

#include "backbone/cuda/device_types.h"

namespace medusa {

struct EmbedArgs {
  DeviceRows rows;
  const Bf16* embedding = nullptr;  // [V, H]
  int64_t hidden_size = 0;          // H
  float* x = nullptr;               // [R, H] the residual stream, written
};

/// out = RMSNorm(x) * weight, rounded. With squares the division is left to the GEMM behind, which
/// finds them as NormedRows says (backbone/cuda/gemm_kernels.h).
struct NormArgs {
  const float* x = nullptr;       // [R, H]
  const float* weight = nullptr;  // [H]
  float epsilon = 0;
  int64_t num_rows = 0;      // R
  int64_t hidden_size = 0;   // H, a multiple of 8
  Bf16* out = nullptr;       // [R, H]
  float* squares = nullptr;  // [R, num_squares]
  int64_t num_squares = 0;   // at most 512
};

/// Rows of one slot that share their reads of the cache: rows [first, first + count) of the pass.
struct DeviceTile {
  int32_t first = 0;
  int32_t count = 0;
};

/// softmax(q Kᵀ / sqrt(D)) V over what each row sees, in the order of positions.
struct TreeAttentionArgs {
  DeviceRows rows;
  const DeviceTile* tiles = nullptr;  // [num_tiles] on the device; each row is in one
  int32_t num_tiles = 0;
  int32_t tile_rows = 0;        // most rows of a tile, as LayerKernels::tile_rows() said
  const Bf16* query = nullptr;  // [R, A, D]
  int64_t num_heads = 0;        // A
  DeviceCache cache;
  int64_t layer = 0;
  int64_t window = 0;          // a row sees the last `window` positions; 0: all
  int64_t max_context = 0;     // no row's position is larger: the grid's size. Rows keep their bits
  float* scratch = nullptr;    // as many floats as LayerKernels::attention_scratch() said
  int32_t* arrived = nullptr;  // [num_tiles, G] zeros, and zeros again behind the pass
  Bf16* out = nullptr;         // [R, A D]
};

/// out = silu(gate) * up.
struct SiluMulArgs {
  const float* gate_up = nullptr;  // [R, 2 I]
  int64_t num_rows = 0;            // R
  int64_t mlp_size = 0;            // I, a multiple of 8
  Bf16* out = nullptr;             // [R, I]
};

/// Keeps accepted rows: in every layer and head of sequence b's slot row starts[b] + paths[b][j]
/// moves to starts[b] + j, for j < counts[b]. Paths ascend, so that what is overwritten was read
/// before.
struct MoveRowsArgs {
  DeviceCache cache;
  const int32_t* slots = nullptr;   // [B]
  const int32_t* starts = nullptr;  // [B] committed rows before the pass
  const int32_t* counts = nullptr;  // [B]
  const int32_t* paths = nullptr;   // [B, max_path] indices within the pass
  int32_t num_sequences = 0;        // B
  int32_t max_path = 0;
};

struct LayerKernels {
  const char* name;  // "CUDA", "emulated CUDA"

  /// Whether attention is written for this head size and number of heads per key/value head.
  bool (*supports)(int64_t head_size, int64_t heads_per_group);
  int32_t (*tile_rows)(int64_t heads_per_group);
  /// Floats for a pass of num_rows rows. Grows with max_context.
  int64_t (*attention_scratch)(int64_t num_rows, int64_t num_heads, int64_t head_size,
                               int64_t max_context);

  void (*embed)(const EmbedArgs& args, DeviceStream stream);
  void (*norm)(const NormArgs& args, DeviceStream stream);
  void (*rope_and_cache)(const RopeAndCacheArgs& args, DeviceStream stream);
  void (*attend)(const TreeAttentionArgs& args, DeviceStream stream);
  void (*silu_mul)(const SiluMulArgs& args, DeviceStream stream);
  void (*move_rows)(const MoveRowsArgs& args, DeviceStream stream);
};

/// Those of this build; null where it was made without a CUDA compiler.
const LayerKernels* cuda_layer_kernels();

}  // namespace medusa
