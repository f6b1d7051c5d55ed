#include "base/replace_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// Without a trailing slash, which would make the name empty.
fs::path plain(const fs::path& folder) {
  const fs::path normal = folder.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

[[noreturn]] void fail(const fs::path& folder, int error) {
  throw UserError(fmt::format(
      "{}: cannot be put in place ({}), expected a folder that can be written; check its rights",
      folder.string(), std::strerror(error)));
}

/// Puts the new folder where the old one is, in one move where the file system can swap.
void take_place(const fs::path& fresh, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder)) {
    if (std::rename(fresh.c_str(), folder.c_str()) != 0) fail(folder, errno);
    return;
  }
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(fresh, ignored);  // now the old one
    return;
  }
  const fs::path old = fresh.string() + "-old";
  fs::remove_all(old, ignored);
  if (std::rename(folder.c_str(), old.c_str()) != 0) fail(folder, errno);
  if (std::rename(fresh.c_str(), folder.c_str()) != 0) {
    const int error = errno;
    std::rename(old.c_str(), folder.c_str());
    fail(folder, error);
  }
  fs::remove_all(old, ignored);
}

}  // namespace

void check_replaceable(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder))
    throw UserError(fmt::format(
        "{}: a file has this name, expected a folder or nothing; move it or choose another folder",
        folder.string()));
  if (!folder_is_done(folder) && !fs::is_empty(folder))
    throw UserError(
        fmt::format("{}: holds files but no DONE, expected nothing there, an empty folder or one "
                    "that medusa finished; move it or choose another folder",
                    folder.string()));
}

void replace_folder(const fs::path& folder, const std::function<void(const fs::path&)>& write) {
  const fs::path named = plain(folder), target = follow_links(named);
  finish_replacement(target);
  check_replaceable(target);
  const fs::path fresh = target.string() + ".partial";
  std::error_code ignored;
  fs::remove_all(fresh, ignored);
  if (named.has_parent_path()) make_folder(named.parent_path());
  // Not a folder or link that somebody else has laid there in the meantime.
  if (::mkdir(fresh.c_str(), 0777) != 0) fail(fresh, errno);
  try {
    write(fresh);
    flush_folder(fresh);
    write_file(fresh / "DONE", "");
    take_place(fresh, target);
  } catch (...) {
    fs::remove_all(fresh, ignored);
    throw;
  }
  flush_folder(target.parent_path());
}

void finish_replacement(const fs::path& folder) {
  const fs::path target = follow_links(plain(folder));
  const fs::path fresh = target.string() + ".partial", old = fresh.string() + "-old";
  std::error_code ignored;
  if (!fs::is_directory(old, ignored)) return;
  if (!fs::exists(fs::symlink_status(target, ignored))) {
    const fs::path& whole = folder_is_done(fresh) ? fresh : old;
    if (std::rename(whole.c_str(), target.c_str()) != 0) fail(target, errno);
    flush_folder(target.parent_path());
  }
  fs::remove_all(old, ignored);
}

bool folder_is_done(const fs::path& folder) { return fs::exists(folder / "DONE"); }

}  // namespace medusa
