#include "backbone/cpu/tile_product.h"

#include "backbone/cpu/product_loop.h"

namespace medusa {

void product_store(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                   PairRange range, float* y, int64_t stride) {
  for_each_pair(
      weight, rows, num_rows, range, [&](int64_t pair, int64_t row, __m512 low, __m512 high) {
        const int64_t left = weight.n - pair * kPairOutputs;  // the last pair may be short
        float* to = y + row * stride + pair * kPairOutputs;
        _mm512_mask_storeu_ps(to, first_lanes(left), low);
        _mm512_mask_storeu_ps(to + kLanes, first_lanes(left - kLanes), high);
      });
}

void product_add(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                 PairRange range, float* y, int64_t stride) {
  for_each_pair(weight, rows, num_rows, range,
                [&](int64_t pair, int64_t row, __m512 low, __m512 high) {
                  const int64_t left = weight.n - pair * kPairOutputs;
                  const __mmask16 in_low = first_lanes(left), in_high = first_lanes(left - kLanes);
                  float* to = y + row * stride + pair * kPairOutputs;
                  const __m512 a = _mm512_maskz_loadu_ps(in_low, to);
                  const __m512 b = _mm512_maskz_loadu_ps(in_high, to + kLanes);
                  _mm512_mask_storeu_ps(to, in_low, _mm512_add_ps(a, low));
                  _mm512_mask_storeu_ps(to + kLanes, in_high, _mm512_add_ps(b, high));
                });
}

void product_swiglu(const TileWeightView& weight, const uint16_t* rows, int64_t num_rows,
                    PairRange range, uint16_t* out, int64_t out_depth) {
  for_each_pair(weight, rows, num_rows, range,
                [&](int64_t pair, int64_t row, __m512 gate, __m512 up) {
                  store_bf16(out + tiled_index(row, pair * kTileRows, out_depth),
                             _mm512_mul_ps(silu(gate), up));
                });
}

}  // namespace medusa
