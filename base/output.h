// What the program prints. The only file of ours that writes to the standard streams.
//
// stdout holds what was asked for. Text that does not arrive there is an error, and a reader that
// has gone away ends the program. stderr holds progress and notes: where nobody takes them, they
// are dropped, since a run of hours is not given up for them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/json_text.h"

namespace medusa {

/// Thrown where stdout is a pipe that nobody reads any more (| head): no error of anybody, so not
/// an std::exception, which somebody on the way might report.
struct ReaderGone {};

/// First in main. A standard stream that is closed is opened on /dev/null, else the first file that
/// the program opens takes its number, and what is printed goes into that file. It is opened the
/// wrong way round, so that printing to a closed stdout fails as before. Signals of writing
/// (SIGPIPE, SIGXFSZ) are ignored: the write itself then says what is wrong.
void prepare_standard_streams();

/// Ends the program as SIGPIPE ends one that does not care: a shell says 141.
[[noreturn]] void end_as_broken_pipe();

/// Whether what is printed reaches a terminal as it is.
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Of the terminal that stdout is, in characters; zeros where it is none, or does not say.
struct TerminalSize {
  int rows = 0, columns = 0;
  bool operator==(const TerminalSize&) const = default;
};
TerminalSize stdout_terminal_size();

/// Whether printing on stdout returns at once: a pipe that nobody empties is full.
bool stdout_takes_bytes();

/// Bytes as they are, on stdout: what the program itself made.
/// @throws UserError   they did not arrive: stdout is closed, full or broken.
/// @throws ReaderGone  nobody reads them.
void print_bytes(std::string_view bytes);

/// Bytes as they are, on stderr.
void note_bytes(std::string_view bytes);

/// A piece of the text that a model wrote, on stdout: control characters are shown on a terminal,
/// and left where the text goes to a file or another program.
/// @throws as print_bytes().
void print_answer(std::string_view piece);

/// Text for people on stdout, with its control characters shown.
/// @throws as print_bytes().
void print_shown(std::string_view text);

/// Text for people on stderr, with its control characters shown.
void note_shown(std::string_view text);

template <typename... Args>
void print_text(fmt::format_string<Args...> format, Args&&... args) {
  print_shown(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void print_note(fmt::format_string<Args...> format, Args&&... args) {
  note_shown(fmt::format(format, std::forward<Args>(args)...));
}

/// A line for programs on stdout.
/// @param text  JSON as dump() gives it.
/// @throws as print_bytes().
void print_json_line(std::string_view text);

/// The same of an nlohmann::json, in whose strings bytes that are not UTF-8 become U+FFFD.
template <typename Json>
void print_json(const Json& value) {
  print_json_line(json_text(value));
}

}  // namespace medusa
