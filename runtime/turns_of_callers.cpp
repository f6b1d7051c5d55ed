#include "runtime/turns_of_callers.h"

#include <fmt/format.h>

#include "base/error.h"

namespace medusa {

TurnsOfCallers::Turn TurnsOfCallers::take(const char* what, const char* shared) {
  if (owner_ == std::this_thread::get_id())
    throw UserError(fmt::format(
        "{}: called while a call of the same {} runs on this thread, expected one after the "
        "other; leave the callback first",
        what, shared));
  return Turn(*this);
}

}  // namespace medusa
