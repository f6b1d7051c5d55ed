#include "tools/measure/resources.h"

#include <c10/core/CachingDeviceAllocator.h>
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

namespace {

constexpr double kGigabyte = 1e9;

/// Null: the device's memory is not counted, as a CPU's.
c10::DeviceAllocator* counting_allocator(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

c10::DeviceIndex index_of(c10::Device device) { return device.has_index() ? device.index() : 0; }

}  // namespace

void reset_peak_memory(c10::Device device) {
  std::ofstream("/proc/self/clear_refs") << "5";  // see proc(5)
  if (auto* allocator = counting_allocator(device)) allocator->resetPeakStats(index_of(device));
}

PeakMemory peak_memory(c10::Device device) {
  PeakMemory peak;
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) peak.main = 1024 * std::stoll(line.substr(6));  // "   1234 kB"
  if (auto* allocator = counting_allocator(device)) {
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    peak.device = allocator->getDeviceStats(index_of(device)).allocated_bytes[kAll].peak;
  }
  return peak;
}

std::string memory_text(const PeakMemory& peak) {
  const auto gigabytes = [](int64_t bytes) {
    return fmt::format("{:.2f} GB", static_cast<double>(bytes) / kGigabyte);
  };
  if (peak.main == 0)
    return peak.device ? "; peak memory on the GPU " + gigabytes(*peak.device) : "";
  std::string text = "; peak memory " + gigabytes(peak.main);
  if (peak.device) text += fmt::format(", {} on the GPU", gigabytes(*peak.device));
  return text;
}

}  // namespace medusa
