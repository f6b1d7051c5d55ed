// Tensors in a file of torch.save (.pt, .bin): a zip archive of one pickle and one member of raw
// numbers for each storage. Read as data; nothing in the file is executed.
#pragma once

#include <filesystem>
#include <span>
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

}  // namespace medusa
