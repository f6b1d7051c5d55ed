// A file that a run adds to, report after report.
#pragma once

#include <filesystem>
#include <string_view>

namespace medusa {

/// Thread safety: none.
class AppendedFile {
 public:
  /// Removes what runs that were killed left half-written of the file.
  /// @param kept  what the file begins with, whatever it held.
  /// @throws UserError  the folder or the file cannot be written.
  AppendedFile(const std::filesystem::path& file, std::string_view kept);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  /// @throws UserError  the disk is full.
  void add(std::string_view bytes);

  /// Lets what was added outlast a power cut.
  /// @throws UserError  the disk fails.
  void flush();

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace medusa
