// Tensors in a file of torch.save (.pt, .bin): a zip archive of one pickle and one member of raw
// numbers for each storage. Read as data; nothing in the file is executed.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/formats/safetensors_file.h"
#include "base/formats/zip_file.h"

namespace medusa {

/// A dict of tensors. Entries point into the mapped file and live as long as it does; two that were
/// one tensor when they were saved have the same bytes.
///
/// Thread safety: const calls may run at the same time.
class TorchFile {
 public:
  /// @throws UserError  the file is missing, cut short or altered; saved by torch before 1.6; holds
  ///                    something else than a dict of dense tensors that lie in one piece; or would
  ///                    run code when loaded by Python.
  explicit TorchFile(const std::filesystem::path& path);

  /// Sorted by name; types are spelt as safetensors spells them.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  const std::filesystem::path& path() const { return zip_.path(); }

 private:
  ZipFile zip_;
  std::vector<SafetensorsEntry> entries_;
};

/// Writes the entries as a plain dict, so that torch.load(weights_only=True) reads them. The file
/// is there whole or as it was before; the same entries give the same bytes.
/// @param entries  names differ; types that torch has: F64, F32, F16, BF16, I64 to I8, U8, BOOL.
/// @throws UserError  the folder cannot be written or the disk is full.
void write_torch_file(const std::filesystem::path& path, std::span<const SafetensorsEntry> entries);

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
