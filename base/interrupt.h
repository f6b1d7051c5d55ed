// Ctrl-C: a flag that long loops look at, so that they end cleanly and keep what is finished.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace medusa {

/// Thrown where there is nothing to keep when the signal came: the process waited for another one,
/// or measured.
class Interrupted : public std::exception {
 public:
  Interrupted() = default;
  /// @param message  what is missing for that; empty: nothing that needs to be said.
  explicit Interrupted(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// From now on SIGINT and SIGTERM set the flag; a second one ends the process at once.
void install_interrupt_handler();

/// True once SIGINT or SIGTERM came. Any thread may ask.
bool interrupted();

/// The work that this process shares with others ends, as one of them was interrupted. A signal of
/// its own still counts as its first one.
void interrupted_elsewhere();

/// What a process that such a signal ended exits with, as shells have it: 130 after SIGINT, 143 if
/// SIGTERM came or another process was interrupted; 0 if nothing did.
int interrupted_status();

/// @throws Interrupted  SIGINT or SIGTERM came.
void stop_if_interrupted();

/// From now on SIGINT never ends the process, however often it comes: for a program that a person
/// talks to, where Ctrl-C ends a part of the work. SIGTERM ends it as before.
void outlive_sigint();

/// Whether SIGINT came and SIGTERM did not; it is forgotten then, so that interrupted() says no.
bool take_sigint();

}  // namespace medusa
