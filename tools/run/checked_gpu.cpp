#include "tools/run/checked_gpu.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "infer/device_check.h"

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

std::optional<std::string> recall(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  const auto kept = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!kept.is_object() || kept.value("key", nlohmann::json()) != key) return std::nullopt;
  const auto finding = kept.find("finding");
  if (finding == kept.end() || !finding->is_string()) return std::nullopt;
  return finding->get<std::string>();
}

}  // namespace

std::string remembered_check(const fs::path& file, const std::string& key,
                             const std::function<std::string()>& check) {
  const bool remembers = !key.empty() && !file.empty();
  if (remembers)
    if (const auto kept = recall(file, key)) return *kept;
  const std::string finding = check();
  if (!remembers) return finding;
  try {
    make_folder(file.parent_path());
    write_file(file, json_text(nlohmann::json{{"key", key}, {"finding", finding}}, 1) + "\n");
  } catch (const UserError&) {  // the next start checks again
  }
  return finding;
}

std::string remembered_gpu_check(at::Device gpu) {
  const fs::path folder = cache_folder();
  const fs::path file =
      folder.empty() ? folder : folder / "medusa" / fmt::format("gpu-{}.json", gpu.index());
  return remembered_check(file, gpu_key(), [gpu] { return check_device(checked_gpu(gpu)); });
}

}  // namespace medusa
