// Whether DeviceKind::Auto takes the GPU: after a check that is remembered.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <string>

#include "infer/device_check.h"
#include "runtime/model_options.h"

namespace medusa {

/// Whether a GPU that nobody asked for by name may compute: check_device() passed there. The answer
/// for this build, driver and GPU is kept in `medusa/` of the user's cache folder ($XDG_CACHE_HOME
/// or ~/.cache).
/// @param note  hears at every call what was found on a GPU that failed; may be empty.
///
/// Thread safety: any thread.
bool may_take_gpu(at::Device device, const NoteFunction& note);

/// The answer of a check that was made before, else of one that is made now and kept.
/// @param file   holds the last answer and the key it was given for. A file that is missing,
///               damaged or cannot be written costs a check, no error.
/// @param key    what the answer depends on: build, driver, GPU. Empty: nothing is remembered.
/// @param check  makes the answer.
DeviceCheck remembered_check(const std::filesystem::path& file, const std::string& key,
                             const std::function<DeviceCheck()>& check);

}  // namespace medusa
