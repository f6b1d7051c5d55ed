// The text of a UserError, so that tests can compare all of it.
#pragma once

#include <string>

#include "base/error.h"
#include "tests/base/temp_folder.h"

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

/// The same, "<>" in place of the folder, which is another one in each run.
template <typename Run>
std::string error_text(const TempFolder& folder, const Run& run) {
  const std::string path = folder.path().string();
  std::string text = error_text(run);
  for (size_t at; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "<>");
  return text;
}

}  // namespace medusa::fixtures
