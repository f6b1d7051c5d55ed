#include "tools/version.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "backbone/cpu/cpu_kernels.h"
#include "backbone/cuda/cuda_llama.h"
#include "base/error.h"
#include "base/output.h"

namespace medusa {

Version version() {
  const CpuKernels* kernels = kernels_for(CpuIsa::Auto, /*quantized=*/false);
  return {MEDUSA_VERSION, MEDUSA_COMMIT, TORCH_VERSION, kernels != nullptr ? kernels->name : "none",
          cuda_kernels().complete()};
}

std::string date_text() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

std::string version_text() { return fmt::format("medusa {} ({})", MEDUSA_VERSION, MEDUSA_COMMIT); }

void print_version(const std::vector<std::string>& arguments) {
  const bool as_json = arguments == std::vector<std::string>{"--json"};
  if (!arguments.empty() && !as_json)
    throw UserError(fmt::format("--version: found '{}', expected --json or nothing; leave it out",
                                arguments.back()));
  const Version found = version();
  if (as_json)
    print_json(nlohmann::json{{"version", found.version},
                              {"commit", found.commit},
                              {"libtorch", found.libtorch},
                              {"isa", found.isa},
                              {"cuda", found.cuda}});
  else
    print_text("{}\nLibTorch {}\nCPU kernels: {}\nCUDA kernels: {}\n", version_text(),
               found.libtorch, found.isa, found.cuda ? "yes" : "no");
}

}  // namespace medusa
