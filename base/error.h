// What the user can correct.
#pragma once

#include <stdexcept>
#include <string>

namespace medusa {

/// Something the user can correct: a setting, a file, a mismatch between artifacts.
/// The message has four parts: where, what was found, what was expected, what to do.
/// tools/main.cpp prints what() alone and exits with status 2.
class UserError : public std::runtime_error {
 public:
  /// @param message  may quote what a file holds: what() gives it as shown_text(), since a zero
  ///                 byte would end it there and a terminal would obey others. Lines and tabs stay.
  explicit UserError(const std::string& message);
};

}  // namespace medusa
