// What an HDF5 file holds under a name: an attribute or a dataset, as type, shape and the place of
// its bytes. Nothing is copied; every shape is checked against the bytes that are there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset/hdf5_structure.h"

namespace medusa {

/// The types of data/dataset/FORMAT.md. All little-endian; a text has a fixed length.
enum class Hdf5Type { Int8, UInt16, Int32, Int64, UInt64, Float32, Text };

struct Hdf5Content {
  Hdf5Type type = Hdf5Type::Int64;
  uint64_t element_bytes = 0;        // at least 1
  std::vector<int64_t> shape;        // empty: one value; at most two dimensions
  std::span<const uint8_t> bytes{};  // of all elements, row after row
};

/// "an int64", "a list of 200 int64", "a matrix [5, 3] of uint16".
std::string describe(const Hdf5Content& content);

/// An attribute message: its name, and one value.
/// @throws UserError  it is no single value, of another type, or its bytes are not there.
std::pair<std::string, Hdf5Content> read_attribute(const Hdf5Bytes& file,
                                                   const Hdf5Message& message);

/// A dataset from the messages of its object header: a list or a matrix that lies in the file in
/// one piece as it is.
/// @param name  "'/tokens'".
/// @throws UserError  it is no dataset, of another type or shape, stored in another way, or reaches
///                    behind the file's end.
Hdf5Content read_dataset(const Hdf5Bytes& file, const std::vector<Hdf5Message>& messages,
                         const std::string& name);

}  // namespace medusa
