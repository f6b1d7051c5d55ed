// medusa --version.
#pragma once

#include <string>
#include <vector>

namespace medusa {

/// Prints version, commit, LibTorch, CPU kernels and CUDA, or with --json one object.
/// @param arguments  behind --version.
/// @throws UserError  there are others than --json.
void print_version(const std::vector<std::string>& arguments);

}  // namespace medusa
