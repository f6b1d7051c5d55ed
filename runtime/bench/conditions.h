// What must be equal for two measurements to be comparable. No LibTorch.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace medusa {

/// Names and values, in the order in which they are compared and shown: model, dtype, threads, …
using Conditions = std::vector<std::pair<std::string, std::string>>;

/// @param file     where the earlier conditions stand, for the message.
/// @throws UserError  names the first condition that differs.
void check_comparable(const std::filesystem::path& file, const Conditions& earlier,
                      const Conditions& now);

/// Each is compared where both have it.
/// @returns  those of this run, then those that it lacks.
/// @throws UserError  names the first that differs.
Conditions joined_conditions(const std::filesystem::path& file, const Conditions& earlier,
                             const Conditions& now);

/// The conditions in a bench.json.
/// @throws UserError  not readable, not JSON, or not written by medusa bench.
Conditions read_conditions(const std::filesystem::path& file);

}  // namespace medusa
