// A line typed at the terminal, with editing keys and history: libedit behind a small interface.
#pragma once

#include <memory>
#include <string>

namespace medusa {

/// What read() came back with.
struct EditedLine {
  enum class End {
    Entered,  // text is the line, in UTF-8, without its end
    Cleared,  // Ctrl-C: what was typed is gone
    Closed,   // Ctrl-D, SIGTERM, or the terminal hung up
  };
  End end;
  std::string text;
};

/// Edits lines on the terminal that standard input is; stdout may be something else. Lines that
/// were entered are remembered until the end of the program. The terminal is in its own mode only
/// while read() waits.
///
/// Thread safety: none.
class LineEditor {
 public:
  /// Sets the process's LC_CTYPE to UTF-8, which libedit writes in.
  /// @throws UserError  the terminal cannot be opened.
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// @param prompt  in UTF-8.
  EditedLine read(const std::string& prompt);

 private:
  struct Libedit;
  std::unique_ptr<Libedit> libedit_;
};

}  // namespace medusa
