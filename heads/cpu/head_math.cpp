#include "heads/cpu/head_math.h"

#include "base/simd.h"

namespace medusa {
namespace {

/// y = SiLU(x + bias) = (x + bias) / (1 + e^-(x + bias))
MEDUSA_INLINE void load_activated(const float* x, const float* bias, F32x16& y) {
  F32x16 shift, e;
  load(x, y);
  load(bias, shift);
  y += shift;
  e = -y;
  exp_in_place(e);
  y /= e + 1.0F;
}

}  // namespace

MEDUSA_WIDE void scale_row(const uint16_t* x, float factor, int64_t size, uint16_t* to) {
  F32x16 y;
  for (int64_t i = 0; i < size; i += kLanes) {
    load(x + i, y);
    y *= factor;
    store(y, to + i);
  }
}

MEDUSA_WIDE void round_row(const float* x, int64_t size, uint16_t* to) {
  F32x16 y;
  for (int64_t i = 0; i < size; i += kLanes) {
    load(x + i, y);
    store(y, to + i);
  }
}

MEDUSA_WIDE void activate_row(const float* x, const float* bias, int64_t size, uint16_t* to) {
  F32x16 y;
  for (int64_t i = 0; i < size; i += kLanes) {
    load_activated(x + i, bias + i, y);
    store(y, to + i);
  }
}

MEDUSA_WIDE void add_to_row(const float* x, int64_t size, uint16_t* state) {
  F32x16 y, before;
  for (int64_t i = 0; i < size; i += kLanes) {
    load(x + i, y);
    load(state + i, before);
    y += before;
    store(y, state + i);
  }
}

MEDUSA_WIDE void add_activated_to_row(const float* x, const float* bias, int64_t size,
                                      uint16_t* state) {
  F32x16 y, before;
  for (int64_t i = 0; i < size; i += kLanes) {
    load_activated(x + i, bias + i, y);
    load(state + i, before);
    y += before;
    store(y, state + i);
  }
}

}  // namespace medusa
