// What memory and disk are free, which a command says before it takes hours, and what it took.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace medusa {

/// Bytes that the system would give without swapping; 0: not known.
int64_t available_memory();

/// Free bytes of the disk that the folder is on or will be; nothing: not known.
std::optional<int64_t> free_disk(const std::filesystem::path& folder);

/// "640 MB", "1.2 GB", in powers of ten.
std::string bytes_text(int64_t bytes);

// The most memory that was held since a moment of one's choice.

struct PeakMemory {
  int64_t main = 0;               // bytes, files that are mapped included; 0: not known
  std::optional<int64_t> device;  // bytes of tensors on a GPU; nothing: the device is a CPU

  /// Where the work was done: the GPU's, or main memory's.
  int64_t where_computed() const { return device.value_or(main); }
};

/// From now on peak_memory() counts. Where the system has no such reset (other than Linux, or
/// without the right), it goes on counting main memory from the start of the process.
void reset_peak_memory(c10::Device device);

/// Of this process.
PeakMemory peak_memory(c10::Device device);

/// What follows a rate: "; peak memory 1.44 GB, 13.50 GB on the GPU". Empty: nothing is known.
std::string memory_text(const PeakMemory& peak);

/// As members "peak_bytes" and "peak_gpu_bytes", as far as they are known.
template <typename Json>
void add_memory(Json& object, const PeakMemory& peak) {
  if (peak.main > 0) object["peak_bytes"] = peak.main;
  if (peak.device) object["peak_gpu_bytes"] = *peak.device;
}

}  // namespace medusa
