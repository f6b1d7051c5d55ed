// What a command that failed tells, and the status it ends with.
#pragma once

#include <exception>
#include <string>

namespace medusa {

struct Failure {
  int status = 0;  // of the process: 2, the user can correct it; 70, we must; 130 or 143, a signal
  std::string message;  // without the program's name; empty: there is nothing to tell
};

/// UserErrors speak for themselves. What the system refuses, a path that leads nowhere, memory or
/// threads, is for the user to correct too and gets the four parts here, in one place, whichever
/// call it comes from. All else is a bug.
Failure failure_of(const std::exception& error);

}  // namespace medusa
