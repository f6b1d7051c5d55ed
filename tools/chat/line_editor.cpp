#include "tools/chat/line_editor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/utf8.h"

namespace medusa {
namespace {

constexpr int kMostRemembered = 1000;  // lines
constexpr int kLookAgain = 200;        // milliseconds: for signals and a terminal that changed

std::wstring to_wide(std::string_view text) {
  std::wstring out;
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    out += static_cast<wchar_t>(step.codepoint);
    text.remove_prefix(step.size);
  }
  return out;
}

/// LC_CTYPE is UTF-8.
std::string to_narrow(const std::wstring& text) {
  std::string out(4 * text.size() + 1, '\0');
  const size_t size = std::wcstombs(out.data(), text.c_str(), out.size());
  out.resize(size == static_cast<size_t>(-1) ? 0 : size);
  return out;
}

[[noreturn]] void fail_to_open(int error) {
  throw UserError(fmt::format(
      "standard input: its terminal cannot be opened ({}), expected one to edit lines on; send the "
      "messages through a pipe instead",
      std::strerror(error)));
}

/// The terminal of standard input, to read from and to write to.
std::string terminal_name() {
  char name[256];
  if (const int error = ::ttyname_r(STDIN_FILENO, name, sizeof name); error != 0)
    fail_to_open(error);
  return name;
}

FILE* open_terminal(const std::string& name) {
  FILE* file = std::fopen(name.c_str(), "r+e");
  if (file == nullptr) fail_to_open(errno);
  return file;
}

}  // namespace

struct LineEditor::Libedit {
  std::string name = terminal_name();
  FILE* terminal = open_terminal(name);
  // Ctrl-C throws away what was typed before it: what poll() has seen need not be there any more.
  Descriptor keys{name, O_RDONLY | O_NONBLOCK | O_NOCTTY};
  EditLine* edit = nullptr;
  HistoryW* history = nullptr;
  std::wstring prompt;
  std::string bytes;  // of a character that is not complete
  int columns = 0, rows = 0;
  bool cleared = false;

  Libedit() {
    if (keys.get() < 0) fail_to_open(errno);
    if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr)
      throw UserError(
          "the locale C.UTF-8: is not there, expected what the C library has built in; send the "
          "messages through a pipe instead");
    edit = ::el_init("medusa", terminal, terminal, terminal);
    history = ::history_winit();
    HistEventW event;
    ::history_w(history, &event, H_SETSIZE, kMostRemembered);
    ::history_w(history, &event, H_SETUNIQUE, 1);
    ::el_wset(edit, EL_CLIENTDATA, this);
    ::el_wset(edit, EL_HIST, ::history_w, history);
    ::el_wset(edit, EL_EDITOR, L"emacs");
    ::el_wset(edit, EL_SIGNAL, 0);
    ::el_wset(edit, EL_PROMPT, &Libedit::prompt_of);
    ::el_wset(edit, EL_GETCFN, &Libedit::read_character);
    ::el_wset(edit, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    look_at_size();
  }
  ~Libedit() {
    ::history_wend(history);
    ::el_end(edit);
    std::fclose(terminal);
  }
  Libedit(const Libedit&) = delete;
  Libedit& operator=(const Libedit&) = delete;

  static Libedit& of(EditLine* edit) {
    void* self = nullptr;
    ::el_wget(edit, EL_CLIENTDATA, &self);
    return *static_cast<Libedit*>(self);
  }

  static wchar_t* prompt_of(EditLine* edit) { return of(edit).prompt.data(); }

  /// @returns 1, or 0 where no more comes for this line.
  static int read_character(EditLine* edit, wchar_t* out) { return of(edit).next_character(*out); }

  int next_character(wchar_t& out) {
    for (;;) {
      if (interrupted()) {
        cleared = take_sigint();
        return 0;
      }
      pollfd readable{keys.get(), POLLIN, 0};
      const int ready = ::poll(&readable, 1, kLookAgain);
      // libedit itself would go on where the cursor stood, which may lie below the last row now.
      if (look_at_size()) ::el_wset(edit, EL_REFRESH);
      take_terminal_back();
      if (ready <= 0) continue;
      char byte;
      const ssize_t got = ::read(keys.get(), &byte, 1);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return 0;  // hung up
      bytes += byte;
      const Utf8Step step = read_utf8(bytes);
      if (step.kind == Utf8Step::Kind::Incomplete) continue;
      bytes.clear();
      out = static_cast<wchar_t>(step.codepoint);
      return 1;
    }
  }

  /// The terminal has another size, or the first.
  /// @returns  whether it has.
  bool look_at_size() {
    winsize size{};
    if (::ioctl(::fileno(terminal), TIOCGWINSZ, &size) != 0) return false;
    if (size.ws_col == columns && size.ws_row == rows) return false;
    columns = size.ws_col;
    rows = size.ws_row;
    ::el_resize(edit);
    return true;
  }

  /// A shell gives the terminal back in its own mode, after Ctrl-Z and fg.
  void take_terminal_back() {
    termios settings{};
    if (::tcgetattr(::fileno(terminal), &settings) != 0 || (settings.c_lflag & ICANON) == 0) return;
    ::el_wset(edit, EL_PREP_TERM, 0);
    ::el_wset(edit, EL_PREP_TERM, 1);
    ::el_wset(edit, EL_REFRESH);
  }
};

LineEditor::LineEditor() : libedit_(std::make_unique<Libedit>()) {}

LineEditor::~LineEditor() = default;

EditedLine LineEditor::read(const std::string& prompt) {
  Libedit& self = *libedit_;
  self.prompt = to_wide(prompt);
  self.cleared = false;
  self.bytes.clear();
  // libedit would show the prompt first, and the terminal itself would take the keys of the fast.
  ::el_wset(self.edit, EL_PREP_TERM, 1);
  int count = 0;
  const wchar_t* line = ::el_wgets(self.edit, &count);
  if (line == nullptr || count <= 0) {
    [[maybe_unused]] const ssize_t put = ::write(::fileno(self.terminal), "\n", 1);
    return {self.cleared ? EditedLine::End::Cleared : EditedLine::End::Closed, ""};
  }
  std::wstring text(line, static_cast<size_t>(count));
  if (text.ends_with(L'\n')) text.pop_back();
  HistEventW event;
  if (!text.empty()) ::history_w(self.history, &event, H_ENTER, text.c_str());
  return {EditedLine::End::Entered, to_narrow(text)};
}

}  // namespace medusa
