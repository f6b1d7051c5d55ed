#include "train/record/appended_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder_lock.h"

namespace medusa {

AppendedFile::AppendedFile(const std::filesystem::path& file, std::string_view kept) : file_(file) {
  make_folder(file.parent_path());
  remove_leftovers(file);
  write_file(file, kept);
  descriptor_ = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0)
    throw UserError(fmt::format(
        "{}: cannot be opened ({}), expected a file that can be appended to; check its rights",
        file.string(), std::strerror(errno)));
}

AppendedFile::~AppendedFile() { close(descriptor_); }

void AppendedFile::add(std::string_view bytes) { write_all(descriptor_, bytes, file_); }

void AppendedFile::flush() { flush_file(descriptor_, file_); }

}  // namespace medusa
