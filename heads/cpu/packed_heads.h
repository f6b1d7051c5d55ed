// The heads' weights as our CPU kernels multiply them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "backbone/cpu/layout/tile_weight.h"
#include "heads/medusa_heads.h"

namespace medusa {

/// One residual layer of one head. W1 is cut up, so that no row [h; e_0; …] has to be put together:
/// W1 [h; e_0; …] = state · h + tokens[0] · e_0 + …
struct PackedHeadBlock {
  TileWeight state;                // [H, H] W, or W1's columns of h
  std::vector<TileWeight> tokens;  // [E] of [H, H]: W1's columns of the root's embedding, and so on
  TileWeight second;               // [H, H] W2; empty for HeadInput::Hidden
  at::Tensor bias;                 // [H] float32
};

/// Packed copies, in bfloat16 or, beside a quantized backbone, in blocks of 8 bits;
/// and the backbone's embedding (not a copy).
struct PackedHeads {
  PackedHeads(const MedusaHeads& heads, const Weights& backbone);

  bool reads_tokens() const { return config.input != HeadInput::Hidden; }
  bool shares_output() const { return !is_own(config.output); }
  bool low_rank() const { return !downs.empty(); }
  bool corrected() const { return !corrections.empty(); }
  int64_t correction_rank() const { return config.correction_rank; }  // R
  const PackedHeadBlock& block(int64_t head, int64_t layer) const {
    return blocks[static_cast<size_t>(head * config.layers_per_head + layer)];
  }

  HeadsConfig config;
  int64_t hidden_size = 0;              // H
  std::vector<TokenId> kept_tokens;     // [V_t] token of each output row; empty: a row is its token
  std::vector<PackedHeadBlock> blocks;  // [K * layers_per_head], head-major
  std::vector<TileWeight> outputs;      // one of [V_t, H] if shared, else K; of low rank [V_t, r]
  std::vector<TileWeight> downs;        // K of [r, H] of low-rank outputs, else none
  std::vector<TileWeight> corrections;  // [K - 1] of [V_t, R], U of heads 1, 2, …, or none
  at::Tensor correction_table;          // [V_t + 1, R] bfloat16
  std::vector<int32_t> row_of_token;    // [V] of the table; read where heads are corrected
  at::Tensor embedding;                 // [V, H] bfloat16; undefined for HeadInput::Hidden
  float gain = 1;                       // embedding_gain() of the backbone
};

}  // namespace medusa
