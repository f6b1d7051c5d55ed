#include "tools/version.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <ctime>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cuda/cuda_llama.h"

namespace medusa {

Version version() {
  const CpuKernels* kernels = kernels_for(CpuIsa::Auto, /*quantized=*/false);
  return {MEDUSA_VERSION, MEDUSA_COMMIT, TORCH_VERSION, kernels != nullptr ? kernels->name : "none",
          cuda_kernels().complete()};
}

std::string date_text() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

std::string version_text() { return fmt::format("medusa {} ({})", MEDUSA_VERSION, MEDUSA_COMMIT); }

}  // namespace medusa
