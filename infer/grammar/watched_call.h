// Calls of a library that cannot be cut short, made on a thread of their own. One that computes for
// too long is left behind: it ends by itself some day, at the lowest priority, and nobody waits.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace medusa {

/// Calls work on this thread's helper and waits for it.
/// @param work   owns all that it uses: it may go on after the return.
/// @param limit  of CPU time.
/// @returns  the CPU time that it took; nothing: it is still computing.
/// @throws   what work throws.
/// @throws UserError  too many calls were left behind and are not done yet; nothing was called.
std::optional<std::chrono::nanoseconds> run_watched(std::function<void()> work,
                                                    std::chrono::nanoseconds limit);

/// Calls that were left behind and are not done yet. While there are any, the process ends without
/// the destructors of static objects, which such a call may use.
int num_left_behind();

}  // namespace medusa
