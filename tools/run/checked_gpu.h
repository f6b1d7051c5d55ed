// The check of a GPU before `backbone.device: auto` takes it, made once and remembered.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <string>

namespace medusa {

/// check_device() of this build's kernels. What it found is kept for build, driver and GPU in
/// `medusa/` of the user's cache folder ($XDG_CACHE_HOME or ~/.cache).
/// @returns  what differed; empty: nothing.
std::string remembered_gpu_check(at::Device gpu);

/// What a check found before, else what one finds now, which is kept.
/// @param file   holds the last finding and the key it was made for. A file that is missing,
/// damaged
///               or cannot be written costs a check, no error.
/// @param key    what the finding depends on: build, driver, GPU. Empty: nothing is remembered.
/// @param check  makes the finding.
std::string remembered_check(const std::filesystem::path& file, const std::string& key,
                             const std::function<std::string()>& check);

}  // namespace medusa
