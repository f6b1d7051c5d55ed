// What is said of a vocabulary that cannot be one.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace medusa {

/// @param source  the file;  @param found, expected  parts of the sentence.
/// @throws UserError  always.
[[noreturn]] inline void refuse_vocabulary(const std::string& source, const std::string& found,
                                           const std::string& expected) {
  throw UserError(fmt::format("{}: {}, expected {}; convert or download the tokenizer again",
                              source, found, expected));
}

}  // namespace medusa
