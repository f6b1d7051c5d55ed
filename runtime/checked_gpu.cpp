#include "runtime/checked_gpu.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace medusa {
namespace {

namespace fs = std::filesystem;

/// The cache folder of this user (XDG Base Directory Specification); empty: there is none.
fs::path cache_folder() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder == '/')
    return folder;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".cache";
  return {};
}

std::string first_line(const fs::path& file, const std::string& start) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(start, 0) == 0) return line;
  return {};
}

/// This build, the driver and its GPUs, as the driver itself names them; empty where it does not.
std::string gpu_key() {
  const fs::path driver = "/proc/driver/nvidia";
  std::string key = first_line(driver / "version", "NVRM");
  if (key.empty()) return {};
  std::error_code error;
  for (const fs::directory_entry& gpu : fs::directory_iterator(driver / "gpus", error))
    key += "; " + first_line(gpu.path() / "information", "Model");
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const auto built = fs::last_write_time(program, error).time_since_epoch().count();
  return fmt::format("{} of {}; {}", program.string(), built, key);
}

std::optional<DeviceCheck> recall(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  const auto kept = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!kept.is_object() || kept.value("key", nlohmann::json()) != key) return std::nullopt;
  const auto finding = kept.find("finding");
  if (finding == kept.end() || !finding->is_string()) return std::nullopt;
  return DeviceCheck{finding->get<std::string>().empty(), finding->get<std::string>()};
}

}  // namespace

DeviceCheck remembered_check(const fs::path& file, const std::string& key,
                             const std::function<DeviceCheck()>& check) {
  const bool remembers = !key.empty() && !file.empty();
  if (remembers)
    if (const auto kept = recall(file, key)) return *kept;
  const DeviceCheck found = check();
  if (!remembers) return found;
  try {
    make_folder(file.parent_path());
    write_file(file, json_text(nlohmann::json{{"key", key}, {"finding", found.finding}}, 1) + "\n");
  } catch (const UserError&) {  // the next start checks again
  }
  return found;
}

bool may_take_gpu(at::Device device, const NoteFunction& note) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, DeviceCheck> checked;  // of this process
  const std::scoped_lock lock(mutex);
  auto found = checked.find(device.index());
  if (found == checked.end()) {
    const fs::path folder = cache_folder();
    const fs::path file =
        folder.empty() ? folder : folder / "medusa" / fmt::format("gpu-{}.json", device.index());
    found = checked
                .emplace(device.index(),
                         remembered_check(file, gpu_key(),
                                          [device] { return check_device(checked_gpu(device)); }))
                .first;
  }
  if (!found->second.passed && note)
    note(fmt::format(
        "note: the CPU decodes, since the GPU failed its check: {}; --device cuda takes the GPU "
        "all the same, --device cpu leaves out this check",
        found->second.finding));
  return found->second.passed;
}

}  // namespace medusa
