#include "base/folder_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/yaml_fields.h"

namespace medusa {
namespace fs = std::filesystem;
namespace {

/// What the file says, key by key.
struct Holder {
  std::string command;
  int64_t pid = 0;
  std::string host;
  std::string since;

  template <typename Fields>
  void fields(Fields& f) {
    f("command", command, "");
    f("pid", pid, "");
    f("host", host, "");
    f("since", since, "");
  }
  void validate() const {}
};

Holder this_process(const std::string& command) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return {command, ::getpid(), host,
          fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)))};
}

/// Who wrote it, for messages; others can write to the file, so nothing but plain text comes
/// through.
std::string holder_text(int descriptor, const fs::path& file) {
  char bytes[1024];
  const ssize_t size = ::pread(descriptor, bytes, sizeof bytes, 0);
  Holder holder;
  try {
    holder = read_config<Holder>(YamlFile::from_text(
        {bytes, static_cast<size_t>(std::max<ssize_t>(size, 0))}, file.string()));
  } catch (const UserError&) {  // not ours
  }
  if (holder.pid == 0) return "another command";  // it has the lock and has not yet written
  std::string text = fmt::format("{} (process {} on {}, since {})", holder.command, holder.pid,
                                 holder.host, holder.since);
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

/// Opened without following a link, as whoever may write to the folder could have put it there.
int open_lock(const fs::path& file) {
  const int descriptor =
      ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  const int error = errno;
  struct stat status {};
  if (descriptor >= 0 && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
    return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  throw UserError(fmt::format(
      "{}: cannot be opened ({}), expected the lock of the commands that write here; remove it if "
      "none runs, or choose another folder",
      file.string(), descriptor >= 0 ? "it is no regular file" : std::strerror(error)));
}

/// Whether the name still is that of the opened file: a holder removes it when it ends.
bool is_still_there(const fs::path& file, int descriptor) {
  struct stat named {
  }, opened{};
  return ::lstat(file.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/// Whether the process whose number this is may still write.
bool lives(pid_t process) {
  return process != ::getpid() && (::kill(process, 0) == 0 || errno != ESRCH);
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, const std::string& command)
    : file_(folder / kName), made_folder_(!fs::exists(folder)) {
  make_folder(folder);
  for (;;) {
    descriptor_ = open_lock(file_);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      const std::string holder = holder_text(descriptor_, file_);
      if (error == EWOULDBLOCK) {
        ::close(descriptor_);
        throw UserError(fmt::format(
            "{}: {} writes here, expected no other command; wait for its end, or set another run",
            folder.string(), holder));
      }
      print_note("{}: cannot be locked ({}), so nothing keeps a second command from writing here\n",
                 folder.string(), std::strerror(error));
      break;
    }
    if (is_still_there(file_, descriptor_)) break;
    ::close(descriptor_);
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && status.st_size > 0)
    print_note("{}: taken over from {}, which was killed\n", folder.string(),
               holder_text(descriptor_, file_));
  try {
    if (::ftruncate(descriptor_, 0) == 0)
      write_all(descriptor_, write_config(this_process(command)), file_);
  } catch (...) {  // the disk is full
    ::close(descriptor_);
    throw;
  }
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : file_(std::move(other.file_)),
      made_folder_(other.made_folder_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  if (is_still_there(file_, descriptor_)) ::unlink(file_.c_str());
  ::close(descriptor_);
  std::error_code ignored;
  if (made_folder_ && fs::is_empty(file_.parent_path(), ignored))
    fs::remove(file_.parent_path(), ignored);
}

void remove_leftovers(const fs::path& file) {
  const std::string before = file.filename().string() + ".part-";
  std::error_code ignored;
  for (fs::directory_iterator entry(file.has_parent_path() ? file.parent_path() : ".", ignored),
       end;
       entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(before)) continue;
    pid_t process = 0;
    const char* const last = name.data() + name.size();
    const auto [read, error] = std::from_chars(name.data() + before.size(), last, process);
    if (error == std::errc() && read == last && process > 0 && !lives(process))
      fs::remove(entry->path(), ignored);
  }
}

}  // namespace medusa
