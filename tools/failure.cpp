#include "tools/failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/interrupt.h"

namespace medusa {
namespace {

constexpr int kUserError = 2, kBug = 70;

constexpr const char* kMemory =
    "memory: the machine or a limit (ulimit -v) gives no more of it, expected enough for this run; "
    "stop other programs, raise the limit, or take less: a smaller model or dtype, a lower "
    "backbone.context, distill.batch or train.batch_positions, smaller files";

/// LibTorch has a type of its own for a GPU's memory only.
bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return torch != nullptr &&
         std::string_view(torch->what_without_backtrace()).find("can't allocate memory") !=
             std::string_view::npos;
}

std::string path_text(const std::filesystem::filesystem_error& error) {
  const std::errc code = static_cast<std::errc>(error.code().value());
  if (code == std::errc::no_space_on_device)
    return fmt::format(
        "{}: the disk is full; free some space or choose another output folder, then run again",
        error.path1().string());
  return fmt::format(
      "{}: cannot be used ({}), expected a path that leads to a file or folder; check its names, "
      "its symbolic links and its permissions",
      error.path1().string(), error.code().message());
}

}  // namespace

Failure failure_of(const std::exception& error) {
  if (dynamic_cast<const UserError*>(&error) != nullptr) return {kUserError, error.what()};
  if (dynamic_cast<const Interrupted*>(&error) != nullptr)
    return {interrupted_status(), error.what()};
  if (is_out_of_memory(error)) return {kUserError, kMemory};
  if (const auto* path = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return {kUserError, UserError(path_text(*path)).what()};
  if (const auto* system = dynamic_cast<const std::system_error*>(&error);
      system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return {kUserError,
            "threads: the system gives no more of them, expected enough for this run; lower "
            "backbone.threads or raise the limit (ulimit -u)"};
  return {kBug, fmt::format("{}\nmedusa: this is a bug, please report it with the command line",
                            error.what())};
}

}  // namespace medusa
