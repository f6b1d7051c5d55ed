// The fields of an HDF5 file's structure by name, so that tests can damage one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace medusa::fixtures {

struct Hdf5Field {
  std::string name;  // "/tokens shape 0", "vocab_size type 4", "superblock end"
  size_t at = 0;
  size_t bytes = 0;  // 1 to 8
};

/// @param file  of the form that Hdf5Builder writes; of others what can be found.
std::vector<Hdf5Field> hdf5_fields(const std::string& file);

/// The file with another number in a field, finalized. A field that is not there is a bug of the
/// test.
std::string with_field(std::string file, const std::string& name, uint64_t value);

/// Writes a number over a field.
void set_field(std::string& file, const Hdf5Field& field, uint64_t value);
uint64_t get_field(const std::string& file, const Hdf5Field& field);

}  // namespace medusa::fixtures
