#include "data/dataset/hdf5_bytes.h"

#include <fmt/format.h>

#include <bit>

#include "base/error.h"

namespace medusa {

static_assert(std::endian::native == std::endian::little, "files and machine are little endian");

std::span<const uint8_t> Hdf5Bytes::at(uint64_t address, uint64_t size,
                                       const std::string& what) const {
  // The first comparison keeps the second from running below zero.
  if (address > bytes_.size() || size > bytes_.size() - address)
    fail(address == kNoHdf5Address
             ? fmt::format("{} is not there", what)
             : fmt::format("{} lies at {} and has {} bytes, the file ends at {}", what, address,
                           size, bytes_.size()));
  return bytes_.subspan(address, size);
}

void Hdf5Bytes::fail(const std::string& found) const {
  throw UserError(fmt::format(
      "{}: {}, expected an HDF5 file as data/dataset/FORMAT.md says; distill the dataset again, "
      "or have its maker write it so",
      file_, found));
}

}  // namespace medusa
