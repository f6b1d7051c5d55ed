#include "runtime/turns_of_callers.h"

#include <fmt/format.h>

#include "base/error.h"

namespace medusa {

TurnsOfCallers::Turn TurnsOfCallers::take(const char* what) {
  if (owner_ == std::this_thread::get_id())
    throw UserError(fmt::format(
        "{}: called while a call of the same model runs on this thread, expected one after the "
        "other; leave the callback first",
        what));
  return Turn(*this);
}

}  // namespace medusa
