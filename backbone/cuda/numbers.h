// A tensor's numbers as kernels take them.
#pragma once

#include <ATen/core/Tensor.h>

namespace medusa {

/// @returns  null of an undefined tensor.
template <typename T>
T* numbers(const at::Tensor& x) {
  return x.defined() ? static_cast<T*>(x.data_ptr()) : nullptr;
}

}  // namespace medusa
