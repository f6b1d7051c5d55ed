// Tensors in a safetensors file by name: reading one as LibTorch's, writing a set of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/formats/safetensors_file.h"

namespace medusa {

/// An entry's numbers in their own type, which is one that LibTorch has; on the CPU, a copy.
at::Tensor entry_tensor(const SafetensorsEntry& entry);

/// A tensor of the file, on the CPU. It owns its bytes.
/// @param dtype  to convert to; floating types only into floating types, others must be as stored.
/// @throws UserError  no such name, or its stored type does not convert to dtype.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::ScalarType dtype);

/// The same, and it must have this shape.
/// @throws UserError  also when the shape is another; the message shows both.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::ScalarType dtype,
                       at::IntArrayRef shape);

/// The dtype that a tensor is stored in.
/// @throws UserError  no such name, or a type that LibTorch does not compute in.
at::ScalarType stored_type(const SafetensorsFile& file, const std::string& name);

/// Writes the tensors, whatever device they are on, in their own dtypes. The file is there whole or
/// as it was before; the same tensors give the same bytes.
/// @throws UserError  the folder cannot be written or the disk is full.
void write_tensors(const std::filesystem::path& path,
                   const std::map<std::string, at::Tensor>& tensors,
                   const std::map<std::string, std::string>& metadata);

}  // namespace medusa
