// One command at a time writes in a folder. The kernel holds the lock (flock) and lets go of it
// when the process ends, however it ends; so a lock that a killed process left is none.
#pragma once

#include <filesystem>
#include <string>

namespace medusa {

/// Holds a folder's lock while it lives: the file kName in it, which says who holds it. Whoever
/// only reads needs none.
///
/// On a file system without locks (NFS without lockd, Lustre without -o flock) it says so on stderr
/// and goes on: there nothing keeps a second command away. NFS mounted with local_lock keeps away
/// those of the same machine alone.
///
/// Thread safety: none.
class FolderLock {
 public:
  static constexpr const char* kName = ".medusa.lock";

  /// Makes the folder if it is not there. Says on stderr whom it takes over from, if the last
  /// holder was killed.
  /// @param command  what runs here, for the message to others: "medusa train".
  /// @throws UserError  another process holds it (says which one); the folder cannot be written.
  FolderLock(const std::filesystem::path& folder, const std::string& command);

  /// Removes the file, and a folder that it made and that stayed empty.
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path file_;
  bool made_folder_ = false;
  int descriptor_ = -1;
};

/// Removes the temporary files (base/file.h: <name>.part-<process>) that processes which were
/// killed left beside a file. Those of living processes of this machine stay.
void remove_leftovers(const std::filesystem::path& file);

}  // namespace medusa
