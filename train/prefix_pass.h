// The prefix layer over whole answers, with autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "backbone/rope.h"
#include "heads/prefix_layer.h"
#include "train/samples/batch.h"

namespace medusa {

/// What heads read at some positions. A batch draws its positions from many answers
/// (shuffle_buffer.h), so queries and everything behind them are computed at these positions alone,
/// keys and values at all of the answers'. The same numbers as heads/prefix_model.h gives, within
/// rounding. Autograd flows to the masters and to answers.hidden.
/// @param rows  [n] of answers, in any order.
/// @returns     [n, H] in the dtype of answers.hidden, which is computed in.
at::Tensor prefix_states(const PrefixLayer& prefix, const RopeTable& rope,
                         const AnswerRows& answers, std::span<const int64_t> rows);

}  // namespace medusa
