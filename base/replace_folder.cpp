#include "base/replace_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>
#include <string>

#include "base/durable_file.h"
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
/// @returns  where the old one is now, or would be.
fs::path take_place(const fs::path& fresh, const fs::path& folder) {
  std::error_code ignored;
  const fs::path old = fresh.string() + "-old";
  if (!fs::exists(folder)) {
    if (std::rename(fresh.c_str(), folder.c_str()) != 0) fail(folder, errno);
    return old;
  }
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0)
    return fresh;
  fs::remove_all(old, ignored);
  if (std::rename(folder.c_str(), old.c_str()) != 0) fail(folder, errno);
  if (std::rename(fresh.c_str(), folder.c_str()) != 0) {
    const int error = errno;
    std::rename(old.c_str(), folder.c_str());
    fail(folder, error);
  }
  return old;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

std::string lines_of(const std::set<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) lines += name + "\n";
  return lines;
}

/// Something that was put into a finished folder afterwards; empty: nothing. DONE of an earlier
/// program lists nothing, and no such folder had folders inside.
std::string foreign_entry(const fs::path& folder) {
  std::istringstream done(read_file(folder / "DONE"));
  std::set<std::string> own;
  for (std::string line; std::getline(done, line);) own.insert(line);
  for (const std::string& name : names_in(folder))
    if (name != "DONE" && (own.empty() ? fs::is_directory(folder / name) : !own.contains(name)))
      return name;
  return "";
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
  if (!folder_is_done(folder)) return;
  if (const std::string foreign = foreign_entry(folder); !foreign.empty())
    throw UserError(fmt::format(
        "{}: holds '{}', which was put there later, expected only what medusa wrote, since all of "
        "it would be replaced; move '{}' away or choose another folder",
        folder.string(), foreign, foreign));
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
  fs::path old;
  try {
    write(fresh);
    flush_folder(fresh);
    write_file(fresh / "DONE", lines_of(names_in(fresh)));
    old = take_place(fresh, target);
  } catch (...) {
    fs::remove_all(fresh, ignored);
    throw;
  }
  // Else a power cut could take back the move and leave what is removed of the old one.
  flush_folder(target.parent_path());
  fs::remove_all(old, ignored);
}

void create_folder(const fs::path& folder, const std::function<void(const fs::path&)>& write) {
  const fs::path target = plain(folder), fresh = target.string() + ".partial";
  std::error_code ignored;
  fs::remove_all(fresh, ignored);
  if (target.has_parent_path()) make_folder(target.parent_path());
  if (::mkdir(fresh.c_str(), 0777) != 0) fail(fresh, errno);
  try {
    write(fresh);
    flush_folder(fresh);
    rename_durably(fresh, target);
  } catch (...) {
    fs::remove_all(fresh, ignored);
    throw;
  }
}

void remove_folder(const fs::path& folder) {
  const fs::path target = plain(folder);
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(target, ignored))) return;
  const fs::path away = target.string() + ".partial";
  fs::remove_all(away, ignored);
  rename_durably(target, away);
  fs::remove_all(away, ignored);
}

void finish_replacement(const fs::path& folder) {
  const fs::path target = follow_links(plain(folder));
  const fs::path fresh = target.string() + ".partial", old = fresh.string() + "-old";
  std::error_code ignored;
  const bool was_moved = fs::is_directory(old, ignored);
  if (was_moved && !fs::exists(fs::symlink_status(target, ignored)))
    rename_durably(folder_is_done(fresh) ? fresh : old, target);
  if (!was_moved && !fs::is_directory(fresh, ignored)) return;
  flush_folder(target.parent_path());  // the move that a kill may have come after
  fs::remove_all(fresh, ignored);
  fs::remove_all(old, ignored);
}

bool folder_is_done(const fs::path& folder) { return fs::exists(folder / "DONE"); }

}  // namespace medusa
