// How torch.save names the storages of tensors, and safetensors their numbers.
#pragma once

#include <array>
#include <string_view>

namespace medusa {

struct TorchStorage {
  std::string_view global;  // module and class, as Pickle names what a file asks for
  std::string_view dtype;   // as in SafetensorsEntry
};

inline constexpr std::array<TorchStorage, 10> kTorchStorages{{
    {"torch DoubleStorage", "F64"},
    {"torch FloatStorage", "F32"},
    {"torch HalfStorage", "F16"},
    {"torch BFloat16Storage", "BF16"},
    {"torch LongStorage", "I64"},
    {"torch IntStorage", "I32"},
    {"torch ShortStorage", "I16"},
    {"torch CharStorage", "I8"},
    {"torch ByteStorage", "U8"},
    {"torch BoolStorage", "BOOL"},
}};

}  // namespace medusa
