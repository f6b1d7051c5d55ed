// Which medusa this is, and what it computes with.
#pragma once

#include <string>
#include <vector>

namespace medusa {

struct Version {
  std::string version;   // "0.1.0"
  std::string commit;    // of the sources when the build was configured; "unknown" outside a clone
  std::string libtorch;  // "2.11.0"
  std::string isa;       // the CPU kernels that bfloat16 weights take here: "AMX bfloat16 tiles"
  bool cuda = false;     // whether our CUDA kernels are in this build
};

Version version();

/// "medusa 0.1.0 (012fc3e1f2a0)".
std::string version_text();

/// Today, in UTC: "2026-11-25". For files and pages that say when they were measured.
std::string date_text();

/// medusa --version: prints version, commit, LibTorch, CPU kernels and CUDA, or with --json one
/// object.
/// @param arguments  behind --version.
/// @throws UserError  there are others than --json.
void print_version(const std::vector<std::string>& arguments);

}  // namespace medusa
