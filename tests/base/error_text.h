// The text of a UserError, so that tests can compare all of it.
#pragma once

#include <string>

#include "base/error.h"

namespace medusa::fixtures {

/// What run() throws as a UserError, or "(no error)". Other exceptions pass.
template <typename Run>
std::string error_text(const Run& run) {
  try {
    run();
  } catch (const UserError& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace medusa::fixtures
