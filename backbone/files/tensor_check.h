// Shapes in messages, and the check of a tensor that a caller of ours passes in.
#pragma once

#include <ATen/core/Tensor.h>

#include <sstream>
#include <string>

#include "base/check.h"

namespace medusa {

/// "[2, 3]"; a size of -1 reads "any".
inline std::string shape_text(at::IntArrayRef shape) {
  std::ostringstream text;
  text << "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text << ", ";
    if (shape[i] == -1)
      text << "any";
    else
      text << shape[i];
  }
  text << "]";
  return text.str();
}

/// @param expected  the sizes; -1 stands for any.
inline bool has_shape(at::IntArrayRef shape, at::IntArrayRef expected) {
  if (shape.size() != expected.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (expected[i] != -1 && shape[i] != expected[i]) return false;
  return true;
}

/// check_shape(x, "hidden", {B, -1, H}).
/// @throws std::logic_error  x has another shape; the message shows both.
inline void check_shape(const at::Tensor& x, const char* name, at::IntArrayRef expected) {
  MEDUSA_ASSERT(has_shape(x.sizes(), expected), std::string(name) + " is " + shape_text(x.sizes()),
                "expected " + shape_text(expected));
}

}  // namespace medusa
