#include "tools/measure/free_room.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace medusa {

std::string bytes_text(int64_t bytes) {
  const double mb = static_cast<double>(bytes) / 1e6;
  return mb < 1000 ? fmt::format("{:.0f} MB", mb) : fmt::format("{:.1f} GB", mb / 1000);
}

int64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  for (std::string key, unit; in >> key;) {
    int64_t kilobytes = 0;
    in >> kilobytes;
    std::getline(in, unit);
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

std::optional<int64_t> free_disk(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::path there = std::filesystem::absolute(folder);
  while (!std::filesystem::exists(there, ignored) && there.has_relative_path())
    there = there.parent_path();
  std::error_code unknown;
  const auto space = std::filesystem::space(there, unknown);
  if (unknown) return std::nullopt;
  return static_cast<int64_t>(space.available);
}

}  // namespace medusa
